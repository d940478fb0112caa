package sim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// fixed is the outcome that a "/succeed" or "/fail" variant always has.
type fixed int

const (
	byChance fixed = iota
	alwaysSucceeds
	alwaysFails
)

// endpoint is one operation of a destination.
type endpoint struct {
	name        string // also the key of its failure rate
	methods     []string
	path        string // segments; "{id}" stands for one of any value
	destination string
	direction   Direction
	outcome     fixed
	failure     failure
	run         func(*operation) outcome
	segments    []string
}

// failure is the answer of a destination that cannot process anything now.
type failure struct {
	status     int
	code       string
	message    string
	retryAfter int // seconds
}

// outcome is what an operation decided. A status from 400 is a refusal; an
// effect happens only below it.
type outcome struct {
	status int
	body   any
	effect *Effect
	// forget keeps the answer from being remembered: the request was not
	// understood, so it was not processed.
	forget bool
}

// operation is what an endpoint needs to decide. It runs under the book's lock.
type operation struct {
	ep     *endpoint
	call   *Call
	id     string // value of {id}
	fields fields
	book   *book
	now    time.Time
}

// fields are the members of a request body, as they were written.
type fields map[string]json.RawMessage

// parseFields reads a body; an empty one has no fields.
func parseFields(body []byte) (fields, error) {
	f := fields{}
	if len(bytes.TrimSpace(body)) == 0 {
		return f, nil
	}
	err := json.Unmarshal(body, &f)
	return f, err
}

func (f fields) has(name string) bool {
	raw, ok := f[name]
	return ok && string(raw) != "null"
}

// raw returns the member as written, or the fallback when it is absent or null.
func (f fields) raw(name, fallback string) json.RawMessage {
	if f.has(name) {
		return f[name]
	}
	return json.RawMessage(fallback)
}

// text returns a string's content, or a number's digits; "" when absent.
func (f fields) text(name string) string {
	if !f.has(name) {
		return ""
	}
	var s string
	if json.Unmarshal(f[name], &s) == nil {
		return s
	}
	return string(f[name])
}

// route finds the endpoint of a request, or the status that says there is none.
func (s *Sim) route(method, escapedPath string) (ep *endpoint, id string, status int) {
	segments := strings.Split(strings.TrimPrefix(escapedPath, "/"), "/")
	status = http.StatusNotFound
	for i := range s.endpoints {
		e := &s.endpoints[i]
		found, ok := e.match(segments)
		if !ok {
			continue
		}
		for _, m := range e.methods {
			if m == method {
				return e, found, 0
			}
		}
		status = http.StatusMethodNotAllowed
	}
	return nil, "", status
}

// match compares segment by segment on the undecoded path, so that an encoded
// slash in an id stays within it and an empty id matches nothing.
func (e *endpoint) match(segments []string) (id string, ok bool) {
	if len(segments) != len(e.segments) {
		return "", false
	}
	for i, want := range e.segments {
		got, err := url.PathUnescape(segments[i])
		switch {
		case err != nil || got == "":
			return "", false
		case want == "{id}":
			id = got
		case want != got:
			return "", false
		}
	}
	return id, true
}

// errorReply is the body of every answer that is not a success. Error is the
// field that the callers' retry rules read, Code the same for classify rules.
type errorReply struct {
	Error       string    `json:"error"`
	Code        string    `json:"code"`
	Message     string    `json:"message"`
	RetryAfter  int       `json:"retryAfter,omitempty"`
	AggregateID string    `json:"aggregateId"`
	Timestamp   time.Time `json:"timestamp"`
}

func (o *operation) refuse(status int, code, message string) outcome {
	return outcome{status: status, body: refusal(o.call, o.now, code, message)}
}

func (o *operation) malformed(message string) outcome {
	out := o.refuse(http.StatusBadRequest, "invalid_request", message)
	out.forget = true
	return out
}

func refusal(c *Call, now time.Time, code, message string) errorReply {
	return errorReply{Error: code, Code: code, Message: message, AggregateID: c.Aggregate, Timestamp: now}
}

// effect starts an effect of this operation under the next number.
func (o *operation) effect(kind Kind, thing string) *Effect {
	return &Effect{
		Seq: o.book.nextEffect(), Call: o.call.Seq, At: o.now,
		Destination: o.call.Destination, Direction: o.call.Direction, Kind: kind,
		Aggregate: o.call.Aggregate, Thing: thing, Key: o.call.Key,
		EventID: o.call.Header.Get("X-Event-Id"),
	}
}

// undo checks that the thing in the path exists and is live, and makes the
// effect that ends it (S4). If it may not be ended, refused says why.
func (o *operation) undo(kind, made Kind, noun string) (e *Effect, t *thing, refused *outcome) {
	t = o.book.things[o.id]
	var out outcome
	switch {
	case t == nil || t.kind != made:
		out = o.refuse(http.StatusNotFound, noun+"_not_found", "no such "+noun)
		return nil, nil, &out
	case t.undone:
		out = o.refuse(http.StatusConflict, "already_undone", "this "+noun+" was ended before, under another key")
		return nil, nil, &out
	}
	e = o.effect(kind, o.id)
	if o.call.Aggregate != t.aggregate {
		e.Aggregate, e.Caller = t.aggregate, o.call.Aggregate
	}
	return e, t, nil
}

func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only our own structs and members that were parsed before come here.
		panic("sim: encode reply: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
