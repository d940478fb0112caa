package spec

import (
	"strings"

	"github.com/theory/jsonpath"
	pathspec "github.com/theory/jsonpath/spec"
)

// Path is an RFC 9535 JSONPath.
type Path struct {
	text   string
	query  *jsonpath.Path
	steps  []Step
	simple bool
}

// Step is one step of a simple path: a member name, or an array index that
// counts from the end when negative.
type Step struct {
	Name    string
	Index   int
	IsIndex bool
}

// String gives the path as it is written in the file.
func (p Path) String() string { return p.text }

// IsZero reports whether there is no path.
func (p Path) IsZero() bool { return p.query == nil }

// Query gives the compiled path.
func (p Path) Query() *jsonpath.Path { return p.query }

// Simple gives the steps of a path that only names members and indexes and so
// selects at most one value. It reports false for all others.
func (p Path) Simple() ([]Step, bool) { return p.steps, p.simple }

// parsePath returns the path, or a message and a suggestion.
func parsePath(text string) (p Path, message, suggestion string) {
	if !strings.HasPrefix(text, "$") {
		return Path{}, "JSONPath must start with $", "write $." + clip(strings.TrimPrefix(text, "."))
	}
	query, err := jsonpath.Parse(text)
	if err != nil {
		return Path{}, "JSONPath " + clip(text) + ": " + strings.TrimPrefix(err.Error(), "jsonpath: "), "write a path of RFC 9535, for example $.lines[0].id"
	}
	if comparesNumbers(query.String()) {
		return Path{}, "JSONPath filter compares numbers, which would be rounded to floating point",
			"compare with a string, true, false or null, or use a condition with op"
	}
	p = Path{text: text, query: query, simple: true}
	for _, segment := range query.Query().Segments() {
		selectors := segment.Selectors()
		if segment.IsDescendant() || len(selectors) != 1 {
			return Path{text: text, query: query}, "", ""
		}
		switch s := selectors[0].(type) {
		case pathspec.Name:
			p.steps = append(p.steps, Step{Name: string(s)})
		case pathspec.Index:
			p.steps = append(p.steps, Step{Index: int(s), IsIndex: true})
		default:
			return Path{text: text, query: query}, "", ""
		}
	}
	return p, "", ""
}

// comparesNumbers looks through a path in canonical form for a comparison
// where neither side is a string, true, false or null: its operands may be
// numbers.
func comparesNumbers(canonical string) bool {
	for i := 0; i < len(canonical); i++ {
		switch c := canonical[i]; {
		case c == '"':
			i = skipString(canonical, i)
		case strings.IndexByte("=!<>", c) >= 0:
			end := i + 1
			if end < len(canonical) && canonical[end] == '=' {
				end++
			}
			if c == '!' && end == i+1 {
				continue // a negation, not a comparison
			}
			if !literalBefore(canonical[:i]) && !literalAfter(canonical[end:]) {
				return true
			}
			i = end - 1
		}
	}
	return false
}

func skipString(text string, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

func literalBefore(text string) bool {
	text = strings.TrimRight(text, " ")
	for _, word := range []string{`"`, "true", "false", "null"} {
		if strings.HasSuffix(text, word) {
			return true
		}
	}
	return false
}

func literalAfter(text string) bool {
	text = strings.TrimLeft(text, " ")
	for _, word := range []string{`"`, "true", "false", "null"} {
		if strings.HasPrefix(text, word) {
			return true
		}
	}
	return false
}
