package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CheckSet checks what only shows over all destinations together: a name used
// twice, an unknown name under after or from, a from that never runs for the
// same events, and a cycle. The error is a *Problems.
func CheckSet(specs []*Spec) error {
	return asError(checkSet(specs))
}

func checkSet(specs []*Spec) []Problem {
	c := &setChecker{byName: map[string]*Spec{}}
	for _, s := range specs {
		if first, twice := c.byName[s.Name]; twice {
			c.add(s, Pos{1, 1}, fmt.Sprintf("destination %q is defined twice", s.Name), "the other is "+first.File)
			continue
		}
		c.byName[s.Name] = s
		c.names = append(c.names, s.Name)
	}
	for _, s := range specs {
		c.references(s)
	}
	c.cycles(specs)
	return c.problems
}

type setChecker struct {
	byName   map[string]*Spec
	names    []string
	problems []Problem
}

func (c *setChecker) add(s *Spec, pos Pos, message, suggestion string) {
	c.problems = append(c.problems, Problem{
		File: s.File, Line: pos.Line, Column: pos.Column, Message: message, Suggestion: suggestion,
	})
}

func (c *setChecker) references(s *Spec) {
	for _, n := range s.after {
		c.known(s, n, "after")
	}
	for _, n := range s.from {
		other := c.known(s, n, "from")
		if other == nil || slices.ContainsFunc(s.rules.EventTypes, other.gets) {
			continue
		}
		c.add(s, n.pos, fmt.Sprintf("from names %q, which gets none of the events of %q", n.name, s.Name), "there would never be a reply to read")
	}
	for _, r := range s.reads {
		c.redacted(s, r)
	}
}

// redacted reports a read of a field that is masked before it is kept.
func (c *setChecker) redacted(s *Spec, r read) {
	other, ok := c.byName[r.name]
	if !ok {
		return
	}
	for _, path := range other.Redact.Body {
		if overlaps(path, r.path) {
			c.add(s, r.pos, fmt.Sprintf("from reads %s of %q, which %s redacts: its value is not kept", r.path, r.name, other.File), "read another field, or remove it from redact there")
			return
		}
	}
}

func (c *setChecker) known(s *Spec, n named, key string) *Spec {
	other, ok := c.byName[n.name]
	if !ok {
		c.add(s, n.pos, fmt.Sprintf("%s names an unknown destination %q", key, n.name), didYouMean(n.name, c.names))
	}
	return other
}

func (s *Spec) gets(eventType string) bool { return slices.Contains(s.rules.EventTypes, eventType) }

// cycles reports each cycle once, at the destination whose name sorts first.
func (c *setChecker) cycles(specs []*Spec) {
	const (
		open = 1
		done = 2
	)
	state := map[string]int{}
	var path []string
	var visit func(name string)
	visit = func(name string) {
		s, known := c.byName[name]
		if !known || state[name] == done {
			return
		}
		if state[name] == open {
			c.cycle(path[slices.Index(path, name):])
			return
		}
		state[name] = open
		path = append(path, name)
		for _, next := range s.rules.After {
			if next != name { // reported by Parse
				visit(next)
			}
		}
		path = path[:len(path)-1]
		state[name] = done
	}
	for _, s := range specs {
		visit(s.Name)
	}
}

func (c *setChecker) cycle(names []string) {
	first := slices.Index(names, slices.Min(names))
	ring := append(slices.Clone(names[first:]), names[:first]...)
	s, next := c.byName[ring[0]], ring[1%len(ring)]
	pos := Pos{1, 1}
	for _, n := range append(slices.Clone(s.after), s.from...) {
		if n.name == next {
			pos = n.pos
			break
		}
	}
	c.add(s, pos, "destinations wait for each other: "+strings.Join(append(ring, ring[0]), " after "), "remove one of these edges")
}

// LoadDir reads all *.yaml and *.yml files of a folder, in the order of their
// names, and checks them one by one and as a set. All problems of all files
// come back in one *Problems; other errors are from the file system.
func LoadDir(dir string) ([]*Spec, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read destination folder: %w", err)
	}
	var specs []*Spec
	var problems []Problem
	named := true
	for _, entry := range entries {
		ext := filepath.Ext(entry.Name())
		if entry.IsDir() || (ext != ".yaml" && ext != ".yml") {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read destination file: %w", err)
		}
		s, found := parse(path, data)
		specs, problems = append(specs, s), append(problems, found...)
		named = named && s.Name != ""
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("no destination file (*.yaml) in %s", dir)
	}
	// A file whose name could not be read would make every reference to it
	// look unknown.
	if named {
		problems = append(problems, checkSet(specs)...)
	}
	if err := asError(problems); err != nil {
		return nil, err
	}
	return specs, nil
}
