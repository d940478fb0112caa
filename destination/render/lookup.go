package render

import (
	"errors"

	"github.com/ebbline/ebb/destination/spec"
)

// ErrNoLookup is returned by Lookup and Found for a file without one.
var ErrNoLookup = errors.New("the destination file has no lookup")

// Lookup renders the question whether a request that was sent has been
// processed. The outcome is OutcomeRequest or OutcomeBroken.
func Lookup(s *spec.Spec, in Input, do Request) (Rendered, error) {
	if s == nil || s.Lookup == nil {
		return Rendered{}, ErrNoLookup
	}
	src := newSources(s.Name, in)
	src.sent = parseDocument(do.Body)
	request, unfit := src.request(s, &s.Lookup.Call, do.Route)
	if unfit != nil {
		return Rendered{Outcome: OutcomeBroken, Reason: "lookup." + unfit.String()}, nil
	}
	return Rendered{Outcome: OutcomeRequest, Request: request}, nil
}

// Found gives the reply that the forward call would have had, from that of a
// lookup. The outcome is OutcomeRequest, with the reply as the request's body,
// or OutcomeBroken.
func Found(s *spec.Spec, in Input, do Request, reply Response) (Rendered, error) {
	if s == nil || s.Lookup == nil {
		return Rendered{}, ErrNoLookup
	}
	if s.Lookup.Map == nil {
		return Rendered{Outcome: OutcomeRequest, Request: Request{Body: reply.Body}}, nil
	}
	src := newSources(s.Name, in)
	src.sent = parseDocument(do.Body)
	src.response = parseDocument(reply.Body)
	body, unfit := src.body(*s.Lookup.Map)
	if unfit != nil {
		return Rendered{Outcome: OutcomeBroken, Reason: "lookup.map: " + unfit.String()}, nil
	}
	return Rendered{Outcome: OutcomeRequest, Request: Request{Body: body}}, nil
}
