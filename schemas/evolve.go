package schemas

import (
	"fmt"
	"reflect"
	"slices"

	twmb "github.com/twmb/avro"
)

// Evolves returns nil if newSchema may be released after oldSchema, else the place and the reason. It asks for more than [Compatible]:
// what Avro lets pass although a value would be lost or read as another one is refused too. A field is never dropped or renamed, since
// a reader of the other version would take its default for the value, and a default never changes, since the same bytes would then be
// read as two values.
func Evolves(oldSchema, newSchema string) error {
	if err := Compatible(oldSchema, newSchema); err != nil {
		return err
	}
	o, err := twmb.Parse(oldSchema)
	if err != nil {
		return fmt.Errorf("old schema: %w", err)
	}
	n, err := twmb.Parse(newSchema)
	if err != nil {
		return fmt.Errorf("new schema: %w", err)
	}
	to, from, err := compilePair(n, o)
	if err != nil {
		return err
	}
	return (&evolution{seen: map[[2]*node]bool{}}).from(from, to, to.name)
}

// evolution compares two versions of a type that are compatible.
type evolution struct {
	seen map[[2]*node]bool // pairs compared, since types may be recursive
}

func (e *evolution) from(o, n *node, path string) error {
	if o == nil || n == nil || e.seen[[2]*node{o, n}] {
		return nil
	}
	e.seen[[2]*node{o, n}] = true
	if err := e.here(o, n, path); err != nil {
		return err
	}
	for _, f := range o.fields {
		if err := e.field(f, n, path+"."+f.name); err != nil {
			return err
		}
	}
	for name, branch := range o.alternatives() {
		if err := e.from(branch, n.alternatives()[name], path); err != nil {
			return err
		}
	}
	return e.from(o.items, n.items, path+"[]")
}

// here compares names and symbols; what they contain comes later.
func (e *evolution) here(o, n *node, path string) error {
	if o.kind != n.kind {
		return nil
	}
	if o.name != n.name {
		return fmt.Errorf("%s: the type was called %s; records are told apart by full name", path, o.name)
	}
	for _, symbol := range o.symbols {
		if !slices.Contains(n.symbols, symbol) {
			return fmt.Errorf("%s: symbol %s is dropped, and would be read as the default %s", path, symbol, n.fallback)
		}
	}
	if o.fallback != "" && o.fallback != n.fallback {
		return fmt.Errorf("%s: the default symbol changes from %s to %q, so that the same bytes would be read as either", path, o.fallback, n.fallback)
	}
	return nil
}

// field finds what became of a field.
func (e *evolution) field(f fieldOf, n *node, path string) error {
	g, ok := n.field(f.name)
	if !ok {
		for _, other := range n.fields {
			if slices.Contains(other.aliases, f.name) {
				return fmt.Errorf("%s: it is renamed to %s; the old schema does not know the alias and would read its default instead of the value", path, other.name)
			}
		}
		return fmt.Errorf("%s: it is dropped or renamed; the old schema would read its default instead of a value", path)
	}
	if f.hasDef && (!g.hasDef || !reflect.DeepEqual(f.def, g.def)) {
		return fmt.Errorf("%s: its default changes, so that the same bytes would be read as two values", path)
	}
	return e.from(f.node, g.node, path)
}

// CheckReleases returns nil if schema, the present one of a subject, is the newest of its releases (oldest first) and may follow all of
// them. The error is an [IncompatibleError] or an [UnreleasedError].
func CheckReleases(subject string, releases []Release, schema string) error {
	if err := checkEvolution(subject, releases, schema); err != nil {
		return err
	}
	if n := len(releases); n == 0 || !sameText(releases[n-1].Schema, schema) {
		return &UnreleasedError{Subject: subject, Version: n + 1}
	}
	return nil
}

func checkEvolution(subject string, releases []Release, schema string) error {
	if err := Validate(Source{Text: schema}); err != nil {
		return &IncompatibleError{Subject: subject, Detail: err.Error()}
	}
	for _, r := range releases {
		if err := Evolves(r.Schema, schema); err != nil {
			return &IncompatibleError{Subject: subject, Version: r.Version, Detail: err.Error()}
		}
	}
	return nil
}

// sameText compares schema texts but for white space between tokens; what is in a doc counts, since registries take it for another
// schema.
func sameText(a, b string) bool {
	x, errX := compact(a)
	y, errY := compact(b)
	return errX == nil && errY == nil && x == y
}
