package handler

import (
	"context"
	"time"
)

// Handler makes the calls of one destination. Its methods are called by many goroutines at once.
type Handler interface {
	// Prepare makes the bytes of a step's request, before its first attempt; they are stored, and every attempt gets the same ones.
	// It must be quick and ask nobody: the aggregate is locked. It gives an error of Skip, Refuse or Park where there is nothing to
	// send; any other error parks the step.
	Prepare(ctx context.Context, s Step) (Request, error)
	// Send makes one attempt, under r.Key. It may be called again with the same request after an end that was not known.
	Send(ctx context.Context, r Request) (Result, error)
	// Undo makes one attempt to undo a success, with the undo bytes of its Result. It is called only for results that have some.
	Undo(ctx context.Context, r Request) (Result, error)
}

// Lookuper is what a Handler has whose destination can be asked what became of a request. Then a step whose outcome is not known is
// looked up and never repeated before its answer is known.
type Lookuper interface {
	// Lookup changes nothing. It gives the Result that Send would have given where the request was processed, NotFound where it was
	// not, Refuse where it was refused for good, and Pending or any other error where that cannot be told yet.
	Lookup(ctx context.Context, r Request) (Result, error)
}

// Step is what a request is made of.
type Step struct {
	// EventID names the event and its saga: a UUID of 36 characters.
	EventID     string
	EventType   string
	Destination string
	// AggregateType and AggregateID name what the event is about.
	AggregateType string
	AggregateID   string
	// Event is a JSON object with the event's fields; numbers have all their digits, so do not decode them into float64.
	Event []byte
	// EventTime is when the event was made, as far as it is known.
	EventTime time.Time
	// TraceParent is the W3C trace context, or empty.
	TraceParent string
	// Replies are what destinations of this saga have answered by now; those of After are there. Only Prepare gets them.
	Replies map[string]Reply
}

// Reply is what a destination answered.
type Reply struct {
	// Status is the HTTP status, 0 where there is none.
	Status int
	Body   []byte
}

// Request is one attempt's request.
type Request struct {
	// Body is what Prepare made, or the undo bytes of a Result, as they were stored. They are kept and shown to operators: no
	// credentials. At most 512 KiB.
	Body []byte

	// The rest is set by Ebb; Prepare leaves it empty.

	// Step is the one that Prepare got, without its Replies.
	Step
	// Key is the idempotency key of every attempt of the step, and of its lookups.
	Key string
	// Undoing says that it is Undo's.
	Undoing bool
	// Attempt counts from 1.
	Attempt int
	// MayHaveHappened says that an earlier attempt may have been processed.
	MayHaveHappened bool
	// Version of the destination that planned the step, from 1: Body may have been made by an older program.
	Version int
}

// Result is a success.
type Result struct {
	// Status is the HTTP status to record, 0 for none.
	Status int
	// Reply is what the destination answered: a JSON object if later destinations take something from it. It is kept and shown to
	// operators: no credentials. At most 1 MiB.
	Reply []byte
	// Undo is the request that Undo gets if the saga is unwound; nil if there is nothing to undo. It is stored with the success: what
	// undoing takes must be in it. At most 512 KiB.
	Undo []byte
}

// Limits of what is stored.
const (
	MaxRequest = 512 << 10
	MaxReply   = 1 << 20
)
