package render

import (
	"fmt"
	"strings"

	"github.com/ebbline/ebb/destination/spec"
)

// matches evaluates a condition by the truth table in the package comment.
func (s *sources) matches(c *spec.Condition) bool {
	switch {
	case c == nil:
		return true
	case c.All != nil:
		for i := range c.All {
			if !s.matches(&c.All[i]) {
				return false
			}
		}
		return true
	case c.Any != nil:
		for i := range c.Any {
			if s.matches(&c.Any[i]) {
				return true
			}
		}
		return false
	case c.Not != nil:
		return !s.matches(c.Not)
	}
	found := s.subject(c).find(c.Path)
	if c.Op == spec.Exists {
		return found.count > 0
	}
	return found.count == 1 && compare(found.one, c.Op, c.Value)
}

func (s *sources) subject(c *spec.Condition) *node {
	if c.From == "" {
		return s.event
	}
	return s.reply(c.From)
}

func compare(n *node, op spec.Op, value spec.Literal) bool {
	if op == spec.Contains {
		return containsValue(n, value)
	}
	switch value.Kind {
	case spec.LiteralNull:
		return (n.kind == kindNull) == (op == spec.Eq)
	case spec.LiteralBool:
		return n.kind == kindBool && (string(n.raw) == value.Text) == (op == spec.Eq)
	case spec.LiteralNumber:
		number, ok := decimal(n)
		return ok && op.Holds(number.Cmp(value.Number))
	}
	text, ok := n.textValue()
	return ok && (text == value.Text) == (op == spec.Eq)
}

func containsValue(n *node, value spec.Literal) bool {
	if n.kind == kindArray {
		for i := range n.items {
			if compare(&n.items[i], spec.Eq, value) {
				return true
			}
		}
		return false
	}
	text, ok := n.textValue()
	return ok && value.Kind == spec.LiteralText && strings.Contains(text, value.Text)
}

func (n *node) textValue() (string, bool) {
	if n.kind != kindText {
		return "", false
	}
	return n.text()
}

// decimal reads a number, or a text that is exactly one.
func decimal(n *node) (spec.Decimal, bool) {
	if n.kind == kindNumber {
		return spec.ParseDecimal(string(n.raw))
	}
	text, ok := n.textValue()
	if !ok {
		return spec.Decimal{}, false
	}
	return spec.ParseDecimal(text)
}

// explain says why a condition did not match: what it is, and the kind of
// what was found, never the value.
func (s *sources) explain(c *spec.Condition) string {
	switch {
	case c == nil:
		return "always"
	case c.All != nil:
		for i := range c.All {
			if !s.matches(&c.All[i]) {
				return s.explain(&c.All[i])
			}
		}
	case c.Any != nil:
		parts := make([]string, len(c.Any))
		for i := range c.Any {
			parts[i] = s.explain(&c.Any[i])
		}
		return strings.Join(parts, ", ")
	}
	if c.Op == "" {
		return c.String() + " is false"
	}
	return fmt.Sprintf("%s: %s", c, s.state(c))
}

func (s *sources) state(c *spec.Condition) string {
	if c.From != "" {
		if why := s.missing(c.From); why != "" {
			return why
		}
	}
	return s.subject(c).find(c.Path).String()
}

func (f selection) String() string {
	switch f.count {
	case 0:
		return "value is absent"
	case 1:
		return "value is " + f.one.kind.String()
	}
	return fmt.Sprintf("path selects %d values", f.count)
}
