package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Source is where a placeholder's value comes from.
type Source uint8

// The sources.
const (
	SourceEvent    Source = iota + 1 // the event
	SourceFrom                       // an earlier destination's reply
	SourceRequest                    // the body that was sent
	SourceResponse                   // the reply that was received
	SourceMeta                       // a property of the event's record
)

// Ref is one placeholder.
type Ref struct {
	// Name is what stands between the braces.
	Name   string
	Source Source
	// From names the destination for SourceFrom, the property for SourceMeta.
	From string
	Path Path
}

// Part is a piece of a template: literal text, or a placeholder.
type Part struct {
	Literal string
	Ref     *Ref
}

// Template is text with placeholders.
type Template struct {
	Parts []Part
}

// Whole gives the placeholder of a template that is nothing else.
func (t Template) Whole() (*Ref, bool) {
	if len(t.Parts) == 1 && t.Parts[0].Ref != nil {
		return t.Parts[0].Ref, true
	}
	return nil, false
}

// Literal gives the text of a template without placeholders.
func (t Template) Literal() (string, bool) {
	switch {
	case len(t.Parts) == 0:
		return "", true
	case len(t.Parts) == 1 && t.Parts[0].Ref == nil:
		return t.Parts[0].Literal, true
	}
	return "", false
}

// Properties of an event's record that placeholders may name.
const (
	MetaEventID     = "eventId"
	MetaEventType   = "eventType"
	MetaAggregateID = "aggregateId"
	MetaCreatedAt   = "createdAt"
	MetaDestination = "destination"
	// MetaIdempotencyKey is the key of the call, in a lookup that of the call
	// that is looked up.
	MetaIdempotencyKey = "idempotencyKey"
)

var metaNames = []string{MetaEventID, MetaEventType, MetaAggregateID, MetaCreatedAt, MetaDestination, MetaIdempotencyKey}

// scope is what placeholders at one place of the file may name.
type scope struct {
	what    string
	sources []string
	extract map[string]*Ref
	// unclear is set when extract could not be read: any name may be one of it.
	unclear bool
}

var (
	forwardSources = []string{"event", "from"}
	revertSources  = []string{"event", "request", "response"}
	commonSources  = []string{"event"}
)

// template parses text with placeholders and reports what is wrong at pos.
func (p *fileParser) template(n *node, in scope) Template {
	var t Template
	if strings.Contains(n.text, "${") {
		p.add(n.pos, in.what+" holds a ${…} reference, which would be stored with each request", "references belong in base_url and auth")
		return t
	}
	literal := ""
	for rest := n.text; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			literal += rest
			break
		}
		literal += rest[:i]
		if strings.HasPrefix(rest[i:], "{{") || strings.HasPrefix(rest[i:], "}}") {
			literal += rest[i : i+1]
			rest = rest[i+2:]
			continue
		}
		end := placeholderEnd(rest[i:])
		if rest[i] == '}' || end < 0 {
			p.add(n.pos, in.what+" has a brace without its partner", "write {{ or }} for a literal brace")
			return Template{}
		}
		if literal != "" {
			t.Parts = append(t.Parts, Part{Literal: literal})
			literal = ""
		}
		if ref := p.ref(rest[i+1:i+end], n.pos, in); ref != nil {
			t.Parts = append(t.Parts, Part{Ref: ref})
		}
		rest = rest[i+end+1:]
	}
	if literal != "" {
		t.Parts = append(t.Parts, Part{Literal: literal})
	}
	return t
}

// placeholderEnd finds the closing brace; braces in quotes of a JSONPath do
// not count.
func placeholderEnd(text string) int {
	quote := byte(0)
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			return -1
		case c == '}':
			return i
		}
	}
	return -1
}

func (p *fileParser) ref(text string, pos Pos, in scope) *Ref {
	source, path, isPath := strings.Cut(text, ":")
	if !isPath {
		return p.namedRef(text, pos, in)
	}
	ref := &Ref{Name: text}
	switch source {
	case "event":
		ref.Source = SourceEvent
	case "request":
		ref.Source = SourceRequest
	case "response":
		ref.Source = SourceResponse
	case "from":
		ref.Source = SourceFrom
		ref.From, path, _ = strings.Cut(path, ":")
	}
	if !slices.Contains(in.sources, source) {
		p.add(pos, fmt.Sprintf("placeholder {%s} in %s: there is no %q here", clip(text), in.what, clip(source)), didYouMean(source, in.sources))
		return nil
	}
	if ref.Source == SourceFrom {
		if !validName(ref.From) || path == "" {
			p.add(pos, fmt.Sprintf("placeholder {%s} in %s is incomplete", clip(text), in.what), "write {from:DESTINATION:$.path}")
			return nil
		}
		p.spec.from = append(p.spec.from, named{ref.From, pos})
	}
	parsed, message, suggestion := parsePath(path)
	if message != "" {
		p.add(pos, fmt.Sprintf("placeholder {%s} in %s: %s", clip(text), in.what, message), suggestion)
		return nil
	}
	ref.Path = parsed
	if ref.Source == SourceFrom {
		p.spec.reads = append(p.spec.reads, read{named{ref.From, pos}, parsed})
	}
	return ref
}

func (p *fileParser) namedRef(name string, pos Pos, in scope) *Ref {
	if ref, ok := in.extract[name]; ok {
		if ref != nil {
			p.used[ref] = true
		}
		return ref
	}
	if slices.Contains(metaNames, name) {
		return &Ref{Name: name, Source: SourceMeta, From: name}
	}
	if in.unclear {
		return nil
	}
	known := slices.Sorted(maps.Keys(in.extract))
	known = append(known, metaNames...)
	suggestion := "write for example {event:$.path}"
	if best := nearest(name, known); best != "" {
		suggestion = fmt.Sprintf("did you mean {%s}?", best)
	} else if slices.Contains(in.sources, "response") {
		suggestion = "list it under extract, or write {response:$.path}"
	}
	p.add(pos, fmt.Sprintf("placeholder {%s} in %s is not defined", clip(name), in.what), suggestion)
	return nil
}

// ValueKind is the kind of a body value.
type ValueKind uint8

// The kinds.
const (
	ValueRaw    ValueKind = iota + 1 // null, true, false or a number, as JSON text
	ValueText                        // a template
	ValueList                        // Items
	ValueObject                      // Fields
)

// Value is a body: a structure whose texts are templates.
type Value struct {
	Kind   ValueKind
	Raw    string
	Text   Template
	Items  []Value
	Fields []Field
}

// Field is one member of a body object; the order is the file's.
type Field struct {
	Name  string
	Value Value
}

func (p *fileParser) value(n *node, in scope) Value {
	switch n.kind {
	case kindNull:
		return Value{Kind: ValueRaw, Raw: "null"}
	case kindBool, kindNumber:
		return Value{Kind: ValueRaw, Raw: n.text}
	case kindList:
		v := Value{Kind: ValueList}
		for _, item := range n.items {
			v.Items = append(v.Items, p.value(item, in))
		}
		return v
	case kindMap:
		v := Value{Kind: ValueObject}
		for _, pair := range n.pairs {
			if strings.ContainsAny(pair.key, "{}") {
				p.add(pair.pos, fmt.Sprintf("key %q in %s has a brace", clip(pair.key), in.what), "placeholders are allowed in values only")
				continue
			}
			v.Fields = append(v.Fields, Field{Name: pair.key, Value: p.value(pair.val, in)})
		}
		return v
	}
	return Value{Kind: ValueText, Text: p.template(n, in)}
}
