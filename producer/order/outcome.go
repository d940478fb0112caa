package order

import (
	"fmt"
	"strings"
	"unicode"
)

// Outcome is news about a saga.
type Outcome struct {
	OrderID  int64
	SagaID   string  // id of the event that the saga handles, lower case
	Kind     Trigger // SagaCompleted, SagaCompensated, SagaParked or SagaResumed
	Revision int64   // grows with every outcome of the saga, from 1
	Reason   string  // of SagaParked; may be empty
}

// Effect says what an outcome did to an order.
type Effect string

// The effects of an outcome.
const (
	Applied      Effect = "applied"       // the order now reflects it
	Stale        Effect = "stale"         // an equal or later revision was applied before
	OtherSaga    Effect = "other_saga"    // not the saga of the create event
	UnknownOrder Effect = "unknown_order" // there is no such order
)

// UnstorableError says that an outcome can never be stored, whatever is tried.
type UnstorableError struct{ Err error }

func (e *UnstorableError) Error() string { return "order: outcome cannot be stored: " + e.Err.Error() }

func (e *UnstorableError) Unwrap() error { return e.Err }

// Apply returns the order after the outcome. Everything but Applied leaves the
// order as it is. It is an *UnstorableError if Kind is not one of the four
// outcomes.
func (o Order) Apply(out Outcome) (Order, Effect, error) {
	switch out.Kind {
	case SagaCompleted, SagaCompensated, SagaParked, SagaResumed:
	default:
		return o, "", &UnstorableError{Err: fmt.Errorf("order %d: %q is not a saga outcome", o.ID, out.Kind)}
	}
	if out.SagaID != o.CreatedEvent {
		return o, OtherSaga, nil
	}
	if out.Revision <= o.SagaRevision {
		return o, Stale, nil
	}
	o.SagaRevision = out.Revision
	switch out.Kind {
	case SagaParked:
		o.Attention = parkedText(out.Reason)
	case SagaResumed:
		o.Attention = ""
	default:
		o = o.ended(out.Kind)
	}
	return o, Applied, nil
}

func (o Order) ended(kind Trigger) Order {
	switch c := machine[o.Status][kind]; c.verdict {
	case move:
		o.Status = c.to
	case attention:
		o.Attention = fmt.Sprintf("%s arrived while the order was %s", kind, o.Status)
	}
	return o
}

// maxAttention keeps a reason that came from outside from growing the row.
const maxAttention = 1000

// parkedText makes text that any database can store: a reason that cannot be
// stored would block all outcomes behind it.
func parkedText(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "\uFFFD"))
	if strings.TrimSpace(reason) == "" {
		return "parked"
	}
	if runes := []rune(reason); len(runes) > maxAttention {
		return string(runes[:maxAttention]) + "…"
	}
	return reason
}
