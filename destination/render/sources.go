package render

import (
	"fmt"
	"time"

	"github.com/ebbline/ebb/destination/spec"
)

// sources gives placeholders and conditions their values.
type sources struct {
	in          Input
	destination string
	undo        bool
	event       *node
	sent        *node
	response    *node
	replies     map[string]*node
}

func newSources(destination string, in Input) *sources {
	s := &sources{in: in, destination: destination, replies: map[string]*node{}}
	s.event = parseDocument(in.Event)
	return s
}

// reply gives the parsed reply of an earlier destination, or nil.
func (s *sources) reply(name string) *node {
	if n, parsed := s.replies[name]; parsed {
		return n
	}
	n := parseDocument(s.in.Responses[name].Body)
	s.replies[name] = n
	return n
}

// missing says why there is no reply to read, or "".
func (s *sources) missing(name string) string {
	if _, known := s.in.Responses[name]; !known {
		return "no reply of " + name + " is recorded"
	}
	if s.reply(name) == nil {
		return "the reply of " + name + " is not JSON"
	}
	return ""
}

// lookup finds the one value of a placeholder, or says what is there instead.
func (s *sources) lookup(ref *spec.Ref) (*node, string) {
	var document *node
	absent := ""
	switch ref.Source {
	case spec.SourceEvent:
		document, absent = s.event, "the event is not JSON"
	case spec.SourceRequest:
		document, absent = s.sent, "the request body is not JSON"
	case spec.SourceResponse:
		document, absent = s.response, "the reply is not JSON"
	case spec.SourceFrom:
		document, absent = s.reply(ref.From), s.missing(ref.From)
	}
	if document == nil {
		return nil, fmt.Sprintf("placeholder {%s}: %s", ref.Name, absent)
	}
	found := document.find(ref.Path)
	if found.count != 1 {
		return nil, fmt.Sprintf("placeholder {%s}: %s", ref.Name, found)
	}
	if ref.Source == spec.SourceFrom && isMask(found.one) {
		return nil, fmt.Sprintf("placeholder {%s}: %s redacts the value, so it is not kept", ref.Name, ref.From)
	}
	return found.one, ""
}

// text gives a placeholder's value as text: texts without quotes, numbers
// digit for digit.
func (s *sources) text(ref *spec.Ref) (text, bad string) {
	if ref.Source == spec.SourceMeta {
		return s.meta(ref.From), ""
	}
	n, bad := s.lookup(ref)
	if bad != "" {
		return "", bad
	}
	switch n.kind {
	case kindNumber, kindBool:
		return string(n.raw), ""
	case kindText:
		text, ok := n.text()
		if !ok {
			return "", fmt.Sprintf("placeholder {%s}: value is not valid Unicode", ref.Name)
		}
		return text, ""
	}
	return "", fmt.Sprintf("placeholder {%s}: value is %s", ref.Name, n.kind)
}

func (s *sources) meta(name string) string {
	switch name {
	case spec.MetaEventID:
		return s.in.EventID
	case spec.MetaEventType:
		return s.in.EventType
	case spec.MetaAggregateID:
		return s.in.AggregateID
	case spec.MetaCreatedAt:
		return s.createdAt()
	case spec.MetaIdempotencyKey:
		if s.undo {
			return s.in.EventID + ":" + s.destination + ":undo"
		}
		return s.in.EventID + ":" + s.destination + ":do"
	}
	return s.destination
}

func (s *sources) createdAt() string { return s.in.CreatedAt.UTC().Format(time.RFC3339Nano) }
