package render

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbline/ebb/destination/spec"
)

// Outcome says what a rendering came to.
type Outcome uint8

// The outcomes. Do gives the first four, Undo the first and the last two.
const (
	OutcomeRequest Outcome = iota + 1 // Request is complete
	OutcomeSkip                       // no call; recorded as skipped
	OutcomeRefuse                     // no call; as if refused
	OutcomePark                       // no call; an operator decides
	OutcomeNone                       // nothing to undo
	OutcomeBroken                     // the undo cannot be built
)

func (o Outcome) String() string {
	names := [...]string{"unset", "request", "skip", "refuse", "park", "none", "broken"}
	if int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// Header is one header field.
type Header struct {
	Name  string
	Value string
}

// Request is a call ready to be stored and sent, without credentials.
type Request struct {
	Method string
	// Base is the address as the file writes it, with its references.
	Base string
	// URL is the encoded path with the query, to be appended to the base.
	URL string
	// Header is in sending order, without Idempotency-Key and credentials.
	Header []Header
	// Body is JSON, or nil for none.
	Body []byte
	// Route is the index of the route in the file.
	Route int
}

// Response is a reply that was received.
type Response struct {
	Status int
	Body   []byte
}

// Input is what a rendering reads.
type Input struct {
	// Event is the event as JSON.
	Event       []byte
	EventID     string
	EventType   string
	AggregateID string
	CreatedAt   time.Time
	// Traceparent is passed on when it is a valid W3C value.
	Traceparent string
	// Responses holds the replies of earlier destinations that succeeded, by
	// name.
	Responses map[string]Response
}

// Rendered is the result of Do and Undo.
type Rendered struct {
	Outcome Outcome
	// Request is set for OutcomeRequest. For other outcomes only its Route
	// may be meaningful.
	Request Request
	// Reason explains every other outcome. It holds no values.
	Reason string
}

// ErrRoute is returned by Undo for a route that the file does not have.
var ErrRoute = errors.New("route is not in the destination file")

// Do chooses the route and renders the call. The error is non-nil only for a
// nil spec; bad data is an outcome.
func Do(s *spec.Spec, in Input) (Rendered, error) {
	if s == nil {
		return Rendered{}, errors.New("render: spec is nil")
	}
	src := newSources(s.Name, in)
	if src.event == nil {
		return Rendered{Outcome: OutcomePark, Reason: "event is not JSON in UTF-8"}, nil
	}
	for i := range s.Routes {
		if src.matches(s.Routes[i].When) {
			request, unfit := src.request(s, &s.Routes[i].Call, i)
			if unfit != nil {
				return Rendered{Outcome: OutcomePark, Reason: unfit.String(), Request: Request{Route: i}}, nil
			}
			return Rendered{Outcome: OutcomeRequest, Request: request}, nil
		}
	}
	return src.noRoute(s), nil
}

func (s *sources) noRoute(file *spec.Spec) Rendered {
	if file.Single {
		return Rendered{Outcome: OutcomeSkip, Reason: "when is false: " + s.explain(file.Routes[0].When)}
	}
	reasons := make([]string, len(file.Routes))
	for i := range file.Routes {
		reasons[i] = fmt.Sprintf("routes[%d] %s", i, s.explain(file.Routes[i].When))
	}
	r := Rendered{Outcome: OutcomePark, Reason: "no route matches: " + strings.Join(reasons, "; ")}
	switch file.Rules().Otherwise {
	case spec.Skip:
		r.Outcome = OutcomeSkip
	case spec.Refuse:
		r.Outcome = OutcomeRefuse
	}
	return r
}

// Undo renders the call that undoes a successful one, from the request that
// was sent, the reply to it, and the event. The error is ErrRoute, or says
// that the spec is nil; bad data is an outcome.
func Undo(s *spec.Spec, route int, in Input, do Request, reply Response) (Rendered, error) {
	if s == nil {
		return Rendered{}, errors.New("render: spec is nil")
	}
	if route < 0 || route >= len(s.Routes) {
		return Rendered{}, fmt.Errorf("render undo of %s, route %d: %w", s.Name, route, ErrRoute)
	}
	revert := s.Routes[route].Revert
	if revert == nil {
		return Rendered{Outcome: OutcomeNone, Reason: "revert: none", Request: Request{Route: route}}, nil
	}
	src := newSources(s.Name, in)
	src.undo = true
	src.sent = parseDocument(do.Body)
	src.response = parseDocument(reply.Body)
	request, unfit := src.request(s, revert, route)
	if unfit != nil {
		return Rendered{Outcome: OutcomeBroken, Reason: unfit.String(), Request: Request{Route: route}}, nil
	}
	return Rendered{Outcome: OutcomeRequest, Request: request}, nil
}

// unfit says why a request cannot be built.
type unfit struct {
	place string // for example "url" or "body.amount"
	what  string
}

func (u *unfit) String() string { return u.place + ": " + u.what }

func (s *sources) request(file *spec.Spec, call *spec.Call, route int) (Request, *unfit) {
	r := Request{Method: call.Method, Base: file.BaseURL.String(), Route: route}
	var bad *unfit
	if r.URL, bad = s.url(call.URL); bad != nil {
		return Request{}, bad
	}
	if call.Body != nil {
		if r.Body, bad = s.body(*call.Body); bad != nil {
			return Request{}, bad
		}
	}
	if r.Header, bad = s.headers(call, r.Body != nil); bad != nil {
		return Request{}, bad
	}
	return r, nil
}
