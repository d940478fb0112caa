package spec

import (
	"fmt"
	"slices"
)

// Op is a condition's operator.
type Op string

// The operators. What they do with absent, null and unlike values is the
// truth table in package render.
const (
	Eq       Op = "eq"
	Ne       Op = "ne"
	Gt       Op = "gt"
	Gte      Op = "gte"
	Lt       Op = "lt"
	Lte      Op = "lte"
	Contains Op = "contains"
	Exists   Op = "exists"
)

var ops = []string{"eq", "ne", "gt", "gte", "lt", "lte", "contains", "exists"}

// LiteralKind is the kind of a condition's value.
type LiteralKind uint8

// The kinds.
const (
	LiteralNull LiteralKind = iota
	LiteralBool
	LiteralNumber
	LiteralText
)

// Literal is the value that a condition compares with.
type Literal struct {
	Kind LiteralKind
	// Text is "true" or "false", the number as written, or the text.
	Text string
	// Number is the exact value for LiteralNumber.
	Number Decimal
}

// Condition is a test over the event or an earlier reply. Exactly one of All,
// Any, Not and Op is set.
type Condition struct {
	All []Condition
	Any []Condition
	Not *Condition

	// From names the destination whose reply is read; "" means the event, or
	// the call's own reply if Reply is set.
	From  string
	Reply bool
	Path  Path
	Op    Op
	Value Literal
}

// String describes a condition for messages. It holds what the file says,
// never a value of an event.
func (c Condition) String() string {
	switch {
	case c.All != nil:
		return fmt.Sprintf("all of %d conditions", len(c.All))
	case c.Any != nil:
		return fmt.Sprintf("any of %d conditions", len(c.Any))
	case c.Not != nil:
		return "not (" + c.Not.String() + ")"
	}
	subject := "event"
	switch {
	case c.Reply:
		subject = "reply"
	case c.From != "":
		subject = "from " + c.From
	}
	if c.Op == Exists {
		return fmt.Sprintf("%s %s exists", subject, c.Path)
	}
	value := c.Value.Text
	switch c.Value.Kind {
	case LiteralNull:
		value = "null"
	case LiteralText:
		value = fmt.Sprintf("%q", c.Value.Text)
	}
	return fmt.Sprintf("%s %s %s %s", subject, c.Path, c.Op, value)
}

// condition reads one over the event or earlier replies.
func (p *fileParser) condition(n *node, what string) *Condition { return p.test(n, what, false) }

// replyCondition reads one over the reply to the call itself.
func (p *fileParser) replyCondition(n *node, what string) *Condition { return p.test(n, what, true) }

func (p *fileParser) test(n *node, what string, reply bool) *Condition {
	if from := n.get("from"); from != nil && reply {
		p.add(keyPos(n, "from"), what+" reads the reply to this call", "remove from")
	}
	m := p.fields(n, what, "from", "path", "op", "value", "all", "any", "not")
	if n.kind != kindMap {
		return nil
	}
	var groups []string
	for _, key := range []string{"all", "any", "not"} {
		if m.get(key) != nil {
			groups = append(groups, key)
		}
	}
	if len(groups) == 0 {
		return p.leaf(m, what, reply)
	}
	if len(m.pairs) > 1 {
		p.add(n.pos, fmt.Sprintf("%s mixes %s with other keys", what, groups[0]), "nest them under all or any")
		return nil
	}
	val := m.get(groups[0])
	if groups[0] == "not" {
		if inner := p.test(val, what+".not", reply); inner != nil {
			return &Condition{Not: inner}
		}
		return nil
	}
	list := p.tests(val, what+"."+groups[0], reply)
	if groups[0] == "all" {
		return &Condition{All: list}
	}
	return &Condition{Any: list}
}

func (p *fileParser) tests(n *node, what string, reply bool) []Condition {
	if n.kind != kindList || len(n.items) == 0 {
		p.add(n.pos, what+" must be a list of conditions", "write - { path: $.a, op: eq, value: b }")
		return nil
	}
	list := make([]Condition, 0, len(n.items))
	for i, item := range n.items {
		if c := p.test(item, fmt.Sprintf("%s[%d]", what, i), reply); c != nil {
			list = append(list, *c)
		}
	}
	return list
}

func (p *fileParser) leaf(m *node, what string, reply bool) *Condition {
	p.need(m, m.pos, what, "path", "op")
	c := &Condition{Reply: reply}
	if from := m.get("from"); from != nil && !reply {
		text, ok := p.text(from, what+".from")
		if ok && !validName(text) {
			p.add(from.pos, fmt.Sprintf("%s.from %q is not a destination's name", what, clip(text)), "write the name of another file's destination")
		} else if ok {
			c.From = text
			p.spec.from = append(p.spec.from, named{text, from.pos})
		}
	}
	if path, ok := p.text(m.get("path"), what+".path"); ok {
		parsed, message, suggestion := parsePath(path)
		if message != "" {
			p.add(m.get("path").pos, what+".path: "+message, suggestion)
		}
		c.Path = parsed
		if c.From != "" && message == "" {
			p.spec.reads = append(p.spec.reads, read{named{c.From, m.get("path").pos}, parsed})
		}
	}
	op, ok := p.text(m.get("op"), what+".op")
	if !ok {
		return nil
	}
	if !slices.Contains(ops, op) {
		p.add(m.get("op").pos, fmt.Sprintf("unknown operator %q in %s", clip(op), what), didYouMean(op, ops))
		return nil
	}
	c.Op = Op(op)
	p.literal(c, m, what)
	return c
}

func (p *fileParser) literal(c *Condition, m *node, what string) {
	val := m.get("value")
	if c.Op == Exists {
		if val != nil {
			p.add(val.pos, what+": exists takes no value", "remove value, or use not for absence")
		}
		return
	}
	if val == nil {
		p.add(m.get("op").pos, fmt.Sprintf("%s: %s needs a value", what, c.Op), "add value:")
		return
	}
	switch val.kind {
	case kindNull:
		c.Value = Literal{Kind: LiteralNull}
	case kindBool:
		c.Value = Literal{Kind: LiteralBool, Text: val.text}
	case kindNumber:
		number, ok := ParseDecimal(val.text)
		if !ok {
			p.add(val.pos, what+".value is a number with an absurd exponent", "write it without an exponent")
		}
		c.Value = Literal{Kind: LiteralNumber, Text: val.text, Number: number}
	case kindString:
		c.Value = Literal{Kind: LiteralText, Text: val.text}
	default:
		p.add(val.pos, fmt.Sprintf("%s.value must be text, a number, true, false or null, not %s", what, val.kind), "compare one field at a time, with all or any around")
		return
	}
	if c.Op.ordered() && c.Value.Kind != LiteralNumber {
		suggestion := "use eq or ne"
		if IsNumber(val.text) {
			suggestion = "write " + val.text + " without quotes"
		}
		p.add(val.pos, fmt.Sprintf("%s: %s compares numbers, and the value is %s", what, c.Op, val.kind), suggestion)
	}
	if c.Op == Contains && c.Value.Kind == LiteralText && c.Value.Text == "" {
		p.add(val.pos, what+": every text contains the empty text", "use exists")
	}
}

func (o Op) ordered() bool { return o == Gt || o == Gte || o == Lt || o == Lte }
