package render

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/ebbline/ebb/destination/spec"
)

// Names of the headers that every call carries. Idempotency-Key is added at
// send, because a repeated call keeps it and an edited one does not.
const (
	HeaderEventID           = "X-Event-Id"
	HeaderEventType         = "X-Event-Type"
	HeaderAggregateID       = "X-Aggregate-Id"
	HeaderDestination       = "X-Destination"
	HeaderCreatedAt         = "X-Created-At"
	HeaderTraceparent       = "traceparent"
	HeaderRevertAggregateID = "X-Revert-Aggregate-Id"
	HeaderRevertEventType   = "X-Revert-Event-Type"
	HeaderRevertDestination = "X-Revert-Destination"
	headerContentType       = "Content-Type"
)

// maxHeaderValue is below what common servers accept for one field.
const maxHeaderValue = 4096

var validTraceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

func (s *sources) headers(call *spec.Call, hasBody bool) ([]Header, *unfit) {
	out := make([]Header, 0, 10+len(call.Headers))
	if hasBody && !declares(call, headerContentType) {
		out = append(out, Header{headerContentType, cmp.Or(call.ContentType, "application/json")})
	}
	out = append(out,
		Header{HeaderEventID, s.in.EventID},
		Header{HeaderEventType, s.in.EventType},
		Header{HeaderAggregateID, s.in.AggregateID},
		Header{HeaderDestination, s.destination},
		Header{HeaderCreatedAt, s.createdAt()})
	if s.undo {
		out = append(out,
			Header{HeaderRevertAggregateID, s.in.AggregateID},
			Header{HeaderRevertEventType, s.in.EventType},
			Header{HeaderRevertDestination, s.destination})
	}
	for _, h := range call.Headers {
		value, bad := s.expandHeader(h.Value)
		if bad != "" {
			return nil, &unfit{"header " + h.Name, bad}
		}
		out = append(out, Header{h.Name, value})
	}
	for _, h := range out {
		if bad := unfitForHeader(h.Value); bad != "" {
			return nil, &unfit{"header " + h.Name, bad}
		}
	}
	// Tracing is never a reason to hold an order up, so a bad value is dropped.
	if validTraceparent.MatchString(s.in.Traceparent) {
		out = append(out, Header{HeaderTraceparent, s.in.Traceparent})
	}
	return out, nil
}

func declares(call *spec.Call, name string) bool {
	for _, h := range call.Headers {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}

// expandHeader is expand with the rule that a placeholder has a visible value.
func (s *sources) expandHeader(t spec.Template) (text, bad string) {
	for _, part := range t.Parts {
		if part.Ref == nil {
			continue
		}
		value, bad := s.text(part.Ref)
		if bad == "" && strings.TrimSpace(value) == "" {
			bad = fmt.Sprintf("placeholder {%s}: value is blank", part.Ref.Name)
		}
		if bad != "" {
			return "", bad
		}
	}
	return s.expand(t)
}

func unfitForHeader(value string) string {
	switch {
	case strings.ContainsFunc(value, unicode.IsControl):
		return "value has a control character"
	case len(value) > maxHeaderValue:
		return fmt.Sprintf("value is longer than %d bytes", maxHeaderValue)
	}
	return ""
}
