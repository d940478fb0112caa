package page

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Journal knows what the pipeline did about an order.
type Journal interface {
	// OrderSagas returns the sagas of an order by version, the newest ones if
	// there are very many. The order's id is its text, as in record keys.
	OrderSagas(ctx context.Context, orderID string) ([]Saga, error)
}

// Saga is the handling of one event of an order.
type Saga struct {
	ID        string
	Event     string // the event's type
	Version   int64
	State     string
	Attention string // why an operator is needed; empty: nobody is
	Reason    string // why it is or was unwound
	CreatedAt time.Time
	UpdatedAt time.Time
	Steps     []Step
	// Calls are the exchanges of all its steps, by their start; the newest if
	// there are very many.
	Calls []Call
	// OmittedCalls counts those that are left out.
	OmittedCalls int
}

// Step is one destination's part, in one direction.
type Step struct {
	Destination string
	Undo        bool
	State       string
	Key         string // the Idempotency-Key of all its attempts
	Maybe       bool   // may have happened without an answer that proves it
	Attempts    int
	Seq         int64  // place in the order of completion, 0 before it
	Waits       string // what it waits for, and why; empty: it has ended
	Next        string // the command that lets it go on; empty: it needs none
	Outcome     string
	Reason      string
}

// Call is one exchange with a destination.
type Call struct {
	Destination string
	Undo        bool
	Attempt     int
	Class       string
	Status      int // HTTP, 0 without a reply
	Error       string
	Sent        bool // a byte of the request may have left
	Fenced      bool // came too late to count
	StartedAt   time.Time
	Duration    time.Duration
}

// Done returns the steps forward, in the plan's order.
func (s Saga) Done() []Step {
	return slices.DeleteFunc(slices.Clone(s.Steps), func(t Step) bool { return t.Undo })
}

// Undone returns the steps back in the order in which they are undone: what was
// completed last comes first.
func (s Saga) Undone() []Step {
	seq := map[string]int64{}
	for _, t := range s.Steps {
		if !t.Undo {
			seq[t.Destination] = t.Seq
		}
	}
	undone := slices.DeleteFunc(slices.Clone(s.Steps), func(t Step) bool { return !t.Undo })
	slices.SortStableFunc(undone, func(x, y Step) int { return cmp.Compare(seq[y.Destination], seq[x.Destination]) })
	return undone
}
