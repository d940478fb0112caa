package render

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ebbline/ebb/destination/spec"
)

// Mask stands where a redacted value was.
const Mask = "***"

// Redact gives a copy of a JSON body with the mask in place of what the paths
// select and of every other value that contains one of the texts, and the
// values that the paths selected, as texts. Everything else keeps its bytes.
// Of a body that is not JSON nothing is kept but the mask, unless it is empty.
func Redact(body []byte, paths []spec.Path, texts []string) (masked []byte, found []string) {
	if len(body) == 0 {
		return body, nil
	}
	root := parseDocument(body)
	if root == nil {
		return []byte(`"` + Mask + `"`), nil
	}
	var places []*node
	for _, path := range paths {
		for _, n := range root.all(path) {
			places = append(places, n)
			found = n.leaves(found)
		}
	}
	places = root.holding(texts, places)
	return cut(body, places), found
}

// leaves appends the texts and numbers in a value.
func (n *node) leaves(out []string) []string {
	switch n.kind {
	case kindNumber:
		return append(out, string(n.raw))
	case kindText:
		return append(out, unquote(n.raw))
	}
	for i := range n.members {
		out = n.members[i].value.leaves(out)
	}
	for i := range n.items {
		out = n.items[i].leaves(out)
	}
	return out
}

// holding appends the texts and numbers that contain one of the texts.
func (n *node) holding(texts []string, out []*node) []*node {
	switch n.kind {
	case kindNumber, kindText:
		value := string(n.raw)
		if n.kind == kindText {
			value = unquote(n.raw)
		}
		if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(value, t) }) {
			return append(out, n)
		}
	}
	for i := range n.members {
		out = n.members[i].value.holding(texts, out)
	}
	for i := range n.items {
		out = n.items[i].holding(texts, out)
	}
	return out
}

// cut replaces places by the mask; one within another counts once.
func cut(body []byte, places []*node) []byte {
	slices.SortFunc(places, func(a, b *node) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return len(b.raw) - len(a.raw)
	})
	var out bytes.Buffer
	end := 0
	for _, n := range places {
		if n.at < end {
			continue
		}
		out.Write(body[end:n.at])
		out.WriteString(`"` + Mask + `"`)
		end = n.at + len(n.raw)
	}
	out.Write(body[end:])
	return out.Bytes()
}

func isMask(n *node) bool { return n.kind == kindText && string(n.raw) == `"`+Mask+`"` }
