package schemas

import (
	"errors"
	"fmt"
	"slices"

	twmb "github.com/twmb/avro"
)

// Source is the text of an Avro schema and of the schemas it refers to, in an
// order in which each comes after those it needs.
type Source struct {
	Text       string
	References []string
}

// Compatible returns nil if data written with either schema (JSON text) can be
// read with the other, else the reason. Against every earlier version that is
// the registry's FULL_TRANSITIVE.
func Compatible(oldSchema, newSchema string) error {
	o, n := Source{Text: oldSchema}, Source{Text: newSchema}
	if err := CanRead(n, o); err != nil {
		return fmt.Errorf("the new schema cannot read old data: %w", err)
	}
	if err := CanRead(o, n); err != nil {
		return fmt.Errorf("the old schema cannot read new data: %w", err)
	}
	return nil
}

// CanRead returns nil if data written with writer can be read with reader,
// else the path and the reason.
func CanRead(reader, writer Source) error {
	r, err := parse(reader)
	if err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	w, err := parse(writer)
	if err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	if err := twmb.CheckCompatibility(w, r); err != nil {
		return errors.New(schemaDetail(err))
	}
	rn, wn, err := compilePair(r, w)
	if err != nil {
		return err
	}
	return (&meaning{seen: map[[2]*node]bool{}}).same(rn, wn, rn.name)
}

func compilePair(reader, writer *twmb.Schema) (r, w *node, err error) {
	if r, err = compile(reader.Root()); err != nil {
		return nil, nil, fmt.Errorf("reader: %w", err)
	}
	if w, err = compile(writer.Root()); err != nil {
		return nil, nil, fmt.Errorf("writer: %w", err)
	}
	return r, w, nil
}

// meaning compares what values mean. Schema resolution ignores most of it, so that microseconds could become milliseconds, an amount
// plain bytes, or text base64.
type meaning struct {
	seen map[[2]*node]bool // pairs compared, since types may be recursive
}

func (m *meaning) same(reader, writer *node, path string) error {
	if reader == nil || writer == nil || m.seen[[2]*node{reader, writer}] {
		return nil
	}
	m.seen[[2]*node{reader, writer}] = true
	if err := m.sameHere(reader, writer, path); err != nil {
		return err
	}
	for _, f := range reader.fields {
		if g, ok := writer.field(f.name); ok {
			if err := m.same(f.node, g.node, path+"."+f.name); err != nil {
				return err
			}
		}
	}
	for name, branch := range reader.alternatives() {
		if err := m.same(branch, writer.alternatives()[name], path); err != nil {
			return err
		}
	}
	return m.same(reader.items, writer.items, path+"[]")
}

// sameHere compares two types without what they contain.
func (m *meaning) sameHere(reader, writer *node, path string) error {
	if reader.kind == "union" || writer.kind == "union" {
		return sameOrder(reader, writer, path)
	}
	if a, b := unit(reader), unit(writer); a != b {
		return fmt.Errorf("%s: the meaning changes from %q to %q", path, b, a)
	}
	if reader.money != writer.money {
		return fmt.Errorf("%s: ebb.money changes, so that the same amount would be shown with other digits", path)
	}
	if (reader.kind == "string" || reader.kind == "bytes") && reader.kind != writer.kind {
		return fmt.Errorf("%s: %s becomes %s: text and base64 are not the same value in JSON", path, writer.kind, reader.kind)
	}
	return nil
}

// sameOrder refuses branches that change places: a value of neither branch's own type goes to the first that can hold it, and the
// default of a field is a value of the first.
func sameOrder(reader, writer *node, path string) error {
	if reader.kind != writer.kind {
		return nil
	}
	shared := func(of, other *node) (out []string) {
		for _, name := range of.order {
			if other.branches[name] != nil {
				out = append(out, name)
			}
		}
		return out
	}
	if a, b := shared(reader, writer), shared(writer, reader); !slices.Equal(a, b) {
		return fmt.Errorf("%s: the branches of the union change places", path)
	}
	return nil
}

func (n *node) field(name string) (fieldOf, bool) {
	for _, f := range n.fields {
		if f.name == name {
			return f, true
		}
	}
	return fieldOf{}, false
}

// alternatives are the branches of a union, or else the type itself.
func (n *node) alternatives() map[string]*node {
	if n.kind == "union" {
		return n.branches
	}
	name := n.name
	if name == "" {
		name = n.kind
	}
	return map[string]*node{name: n}
}

// unit is what decides how the number or the bytes of a value are to be
// understood. A uuid is text with or without its logical type.
func unit(n *node) string {
	switch {
	case n.connect != "" && n.logical == "":
		return n.connect
	case n.logical == "uuid":
		return ""
	}
	return n.logical
}

// Validate returns nil if the schema can be used, else the reason. It also
// refuses the default "null" of a nullable field: text, where null was meant.
func Validate(s Source) error {
	parsed, err := parse(s)
	if err != nil {
		return err
	}
	return lint(parsed.Root(), "")
}

func parse(s Source) (*twmb.Schema, error) {
	if len(s.References) == 0 {
		return twmb.Parse(s.Text)
	}
	var cache twmb.SchemaCache
	for i, ref := range s.References {
		if _, err := cache.Parse(ref); err != nil {
			return nil, fmt.Errorf("reference %d: %w", i+1, err)
		}
	}
	return cache.Parse(s.Text)
}

// lint walks the definitions of a schema. Types that are only named lead
// nowhere, so recursion ends.
func lint(s *twmb.SchemaNode, path string) error {
	if s == nil {
		return nil
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		at := f.Name
		if path != "" {
			at = path + "." + f.Name
		}
		if text, ok := f.Default.(string); ok && text == "null" && f.Type.Type == "union" {
			return fmt.Errorf(`field %s: the default is the text "null"; write null, and put "null" first in the union`, at)
		}
		if err := lint(&f.Type, at); err != nil {
			return err
		}
	}
	for i := range s.Branches {
		if err := lint(&s.Branches[i], path); err != nil {
			return err
		}
	}
	return errors.Join(lint(s.Items, path), lint(s.Values, path))
}

func schemaDetail(err error) string {
	if c, ok := errors.AsType[*twmb.CompatibilityError](err); ok {
		return fmt.Sprintf("%s: %s (reader %s, writer %s)", c.Path, c.Detail, c.ReaderType, c.WriterType)
	}
	return err.Error()
}
