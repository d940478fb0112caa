package page

import (
	"cmp"
	"context"
	"slices"
	"strings"
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

// Done returns the steps forward: what is completed in that order, then the
// others, those that have come furthest first.
func (s Saga) Done() []Step {
	done := slices.DeleteFunc(slices.Clone(s.Steps), func(t Step) bool { return t.Undo })
	slices.SortStableFunc(done, func(x, y Step) int {
		return cmp.Or(cmp.Compare(progress(x), progress(y)), cmp.Compare(x.Seq, y.Seq))
	})
	return done
}

// progress is lower the further a step has come.
func progress(t Step) int {
	if t.Seq > 0 {
		return 0
	}
	switch t.State {
	case "SKIPPED", "REFUSED":
		return 1
	case "CALLING", "RESOLVING", "PARKED":
		return 2
	case "READY":
		return 3
	case "WAITING":
		return 4
	default:
		return 5
	}
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

// Said is the outcome where it says more than the state does.
func (t Step) Said() string {
	if strings.EqualFold(t.Outcome, t.State) {
		return ""
	}
	return t.Outcome
}
