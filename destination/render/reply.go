package render

import "github.com/ebbline/ebb/destination/spec"

// Reply is the body of a reply that can be asked. The zero value is one that
// is not JSON: everything in it is absent.
type Reply struct{ src *sources }

// ParseReply reads a body. Anything but one JSON document gives the zero Reply.
func ParseReply(body []byte) Reply {
	n := parseDocument(body)
	if n == nil {
		return Reply{}
	}
	return Reply{&sources{event: n}}
}

// IsJSON reports whether the body is a JSON document.
func (r Reply) IsJSON() bool { return r.src != nil }

// Matches asks a condition over the reply, by the truth table of this package.
func (r Reply) Matches(c *spec.Condition) bool {
	if r.src == nil {
		return (&sources{}).matches(c)
	}
	return r.src.matches(c)
}

// Has reports whether a path selects anything but null.
func (r Reply) Has(path spec.Path) bool {
	if r.src == nil {
		return false
	}
	for _, n := range r.src.event.all(path) {
		if n.kind != kindNull {
			return true
		}
	}
	return false
}

// Text gives the one text or number at a path as text, digit for digit.
func (r Reply) Text(path spec.Path) (string, bool) {
	if r.src == nil {
		return "", false
	}
	found := r.src.event.find(path)
	switch {
	case found.count != 1:
		return "", false
	case found.one.kind == kindNumber:
		return string(found.one.raw), true
	}
	return found.one.textValue()
}
