package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/theory/jsonpath"
	pathspec "github.com/theory/jsonpath/spec"

	"github.com/ebbline/ebb/destination/spec"
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindObject
	kindArray
)

func (k kind) String() string {
	return [...]string{"null", "true/false", "a number", "text", "an object", "an array"}[k]
}

// node is a JSON value that remembers its bytes, so that numbers and key
// order survive.
type node struct {
	kind    kind
	raw     []byte
	at      int // where raw begins in the document
	members []member
	items   []node
}

type member struct {
	name  string
	value node
}

// parseDocument reads one JSON document. It gives nil for anything else, bytes
// that are not UTF-8 included.
func parseDocument(data []byte) *node {
	if !json.Valid(data) || !utf8.Valid(data) {
		return nil
	}
	s := scanner{data: data}
	n := s.value()
	return &n
}

// scanner walks over bytes that are known to be valid JSON.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *scanner) value() node {
	s.skipSpace()
	start := s.pos
	var n node
	switch s.data[s.pos] {
	case '{':
		n = s.object()
	case '[':
		n = s.array()
	case '"':
		s.text()
		n.kind = kindText
	case 't', 'f':
		s.word()
		n.kind = kindBool
	case 'n':
		s.word()
		n.kind = kindNull
	default:
		s.word()
		n.kind = kindNumber
	}
	n.raw, n.at = s.data[start:s.pos], start
	return n
}

func (s *scanner) object() node {
	n := node{kind: kindObject}
	s.pos++
	for s.skipSpace(); s.data[s.pos] != '}'; s.skipSpace() {
		if s.data[s.pos] == ',' {
			s.pos++
			s.skipSpace()
		}
		name := unquote(s.text())
		s.skipSpace()
		s.pos++ // the colon
		n.members = append(n.members, member{name, s.value()})
	}
	s.pos++
	return n
}

func (s *scanner) array() node {
	n := node{kind: kindArray}
	s.pos++
	for s.skipSpace(); s.data[s.pos] != ']'; s.skipSpace() {
		if s.data[s.pos] == ',' {
			s.pos++
		}
		n.items = append(n.items, s.value())
	}
	s.pos++
	return n
}

func (s *scanner) text() []byte {
	start := s.pos
	for s.pos++; s.data[s.pos] != '"'; s.pos++ {
		if s.data[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos++
	return s.data[start:s.pos]
}

func (s *scanner) word() {
	for s.pos < len(s.data) && strings.IndexByte(" \t\r\n,]}", s.data[s.pos]) < 0 {
		s.pos++
	}
}

func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	// The bytes are valid JSON text, so this cannot fail.
	_ = json.Unmarshal(raw, &text)
	return text
}

// text gives the value of a text node, and false when it has half a UTF-16
// surrogate pair: such a text has no form outside JSON.
func (n *node) text() (string, bool) {
	text := unquote(n.raw)
	broken := strings.ContainsRune(text, utf8.RuneError) && bytes.Contains(bytes.ToLower(n.raw), []byte(`\ud`))
	return text, !broken
}

// selection is what a path selects: nothing, one value, or several.
type selection struct {
	count int
	one   *node
}

// find evaluates a path. A nil node stands for a missing document.
func (n *node) find(path spec.Path) selection {
	if n == nil {
		return selection{}
	}
	steps, simple := path.Simple()
	if !simple {
		return n.query(path.Query())
	}
	for _, step := range steps {
		if n = n.step(step.Name, step.Index, step.IsIndex); n == nil {
			return selection{}
		}
	}
	return selection{1, n}
}

func (n *node) step(name string, index int, isIndex bool) *node {
	if isIndex {
		if index < 0 {
			index += len(n.items)
		}
		if n.kind != kindArray || index < 0 || index >= len(n.items) {
			return nil
		}
		return &n.items[index]
	}
	// A repeated name means its last value, as in encoding/json.
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].name == name {
			return &n.members[i].value
		}
	}
	return nil
}

// query runs a path with wildcards, slices or filters and finds the selected
// place in the nodes again.
func (n *node) query(path *jsonpath.Path) selection {
	located := path.SelectLocated(n.generic())
	if len(located) != 1 {
		return selection{count: len(located)}
	}
	if found := n.located(located[0]); found != nil {
		return selection{1, found}
	}
	return selection{}
}

func (n *node) located(place *pathspec.LocatedNode) *node {
	for _, step := range place.Path {
		switch s := step.(type) {
		case pathspec.Name:
			n = n.step(string(s), 0, false)
		case pathspec.Index:
			n = n.step("", int(s), true)
		}
		if n == nil {
			return nil
		}
	}
	return n
}

// all gives every value that a path selects.
func (n *node) all(path spec.Path) []*node {
	if _, simple := path.Simple(); simple {
		if found := n.find(path); found.count == 1 {
			return []*node{found.one}
		}
		return nil
	}
	var out []*node
	for _, place := range path.Query().SelectLocated(n.generic()) {
		if found := n.located(place); found != nil {
			out = append(out, found)
		}
	}
	return out
}

func (n *node) generic() any {
	switch n.kind {
	case kindBool:
		return n.raw[0] == 't'
	case kindNumber:
		return json.Number(n.raw)
	case kindText:
		return unquote(n.raw)
	case kindObject:
		object := make(map[string]any, len(n.members))
		for _, m := range n.members {
			object[m.name] = m.value.generic()
		}
		return object
	case kindArray:
		array := make([]any, len(n.items))
		for i := range n.items {
			array[i] = n.items[i].generic()
		}
		return array
	}
	return nil
}
