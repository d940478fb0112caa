package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Redact names what is kept sealed and shown masked.
type Redact struct {
	// Headers are names of header fields of requests and replies.
	Headers []string
	// Body are places in the bodies of requests and replies.
	Body []Path
}

// IsZero reports whether nothing is named.
func (r Redact) IsZero() bool { return len(r.Headers) == 0 && len(r.Body) == 0 }

// HasHeader reports whether a header field is named; case does not matter.
func (r Redact) HasHeader(name string) bool {
	return slices.ContainsFunc(r.Headers, func(h string) bool { return strings.EqualFold(h, name) })
}

// read is a value of an earlier reply that a file reads.
type read struct {
	named
	path Path
}

func (p *fileParser) redact(root *node) {
	n := root.get("redact")
	if n == nil {
		return
	}
	m := p.fields(n, "redact", "headers", "body")
	p.spec.redactPos = keyPos(root, "redact")
	if n.kind == kindMap && len(m.pairs) == 0 {
		p.add(n.pos, "redact names nothing", "write redact: { headers: [X-Card], body: [ $.card ] }")
	}
	if list := m.get("headers"); list != nil {
		for _, h := range p.names(list, "redact.headers", "X-Card", validHeaderName) {
			if isStandardHeader(h.name) {
				p.add(h.pos, fmt.Sprintf("redact.headers: %s is set by Ebb and holds no secret", h.name), "remove it")
				continue
			}
			p.spec.Redact.Headers = append(p.spec.Redact.Headers, h.name)
		}
	}
	if list := m.get("body"); list != nil {
		p.spec.Redact.Body = p.paths(list, "redact.body")
	}
}

// overlaps reports whether one simple path leads into what the other selects.
// It is false when that cannot be decided.
func overlaps(a, b Path) bool {
	one, ok := a.Simple()
	two, ok2 := b.Simple()
	n := min(len(one), len(two))
	return ok && ok2 && slices.Equal(one[:n], two[:n])
}

// CheckSealed reports files that redact something although there is no key to
// seal it with. The error is a *Problems.
func CheckSealed(specs []*Spec) error {
	var problems []Problem
	for _, s := range specs {
		if !s.Redact.IsZero() {
			problems = append(problems, Problem{
				File: s.File, Line: s.redactPos.Line, Column: s.redactPos.Column,
				Message:    "redact needs a key: requests are stored before they are sent, and these fields have to be sealed in them",
				Suggestion: "set EBB_SEAL_KEY, for example to the output of: openssl rand -base64 32",
			})
		}
	}
	return asError(problems)
}
