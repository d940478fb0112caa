package sim

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Action says what a fault does to a call.
type Action string

const (
	// Lose processes the call, keeps its effect and cuts the connection
	// instead of replying.
	Lose Action = "lose"
	// Hang waits for Duration, or until the client gives up; see [Fault.At].
	Hang Action = "hang"
	// ReplyWith sends Status, Header and Body instead of processing the call.
	ReplyWith Action = "reply"
	// Unavailable sends 503 with RetryAfter, when that is above zero.
	Unavailable Action = "unavailable"
	// StallBody processes the call, sends the head and half of the body, and
	// waits for Duration, or until the client gives up; then it cuts.
	StallBody Action = "stall-body"
	// Reset reads the request and resets the connection without an effect. The
	// client has sent bytes, so it cannot tell this from Lose.
	Reset Action = "reset"
	// RefuseConnection keeps clients from connecting. On a listener of the
	// destination's own ([Sim.ServeDestination]) Mode "closed" closes it, so
	// that the client's connect is refused, and "reset" (default) accepts and
	// resets before a byte is read. On the listener shared by all destinations
	// neither can be done for one of them: calls are reset as by Reset.
	RefuseConnection Action = "refuse-connection"
)

// When a [Hang] waits.
const (
	// HangBefore (default) waits in front of the destination: it does not know
	// of the call yet, a lookup finds nothing, and a second call under the same
	// key overtakes this one. The call is processed after the wait, even if the
	// client has gone.
	HangBefore = "before"
	// HangDuring waits while the destination works on the call: a second one
	// under the same key gets 409 in_progress. The effect comes after the wait.
	HangDuring = "during"
	// HangAfter has the effect first and only holds back the reply.
	HangAfter = "after"
)

// Modes of [RefuseConnection].
const (
	RefuseByReset   = "reset"
	RefuseByClosing = "closed"
)

// Fault is one line of the fault script. A call takes the first fault all of
// whose conditions hold; empty conditions hold always.
type Fault struct {
	// ID names the fault; it is given one when it has none.
	ID string `json:"id,omitempty"`

	// Destination and Direction select calls. Without a direction a fault
	// concerns do and undo, not lookup.
	Destination string    `json:"destination,omitempty"`
	Direction   Direction `json:"direction,omitempty"`
	Aggregate   string    `json:"aggregate,omitempty"`
	// Attempt selects the n-th call under one Idempotency-Key, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Next ends the fault after so many calls. 0: it does not end by itself.
	Next int `json:"next,omitempty"`
	// Probability makes the fault strike by chance. 0: it always strikes.
	Probability Rate `json:"probability,omitempty"`
	// Seed makes another sequence of chances.
	Seed uint64 `json:"seed,omitempty"`
	// For ends the fault so long after it was set. 0: it does not end by itself.
	For Duration `json:"for,omitempty"`

	Action Action `json:"action"`
	// Duration is how long Hang and StallBody wait. 0: until the client gives up.
	Duration Duration `json:"duration,omitempty"`
	// At says when Hang waits: before (default), during or after.
	At string `json:"at,omitempty"`
	// Status, Header and Body are the answer of ReplyWith.
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   RawBody     `json:"body,omitempty"`
	// RetryAfter is in seconds, for Unavailable.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Mode is for RefuseConnection.
	Mode string `json:"mode,omitempty"`

	// Struck counts the calls that the fault was applied to. Set by the simulator.
	Struck int `json:"struck"`
}

func (f Fault) validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if f.Destination != "" && !isDestination(f.Destination) {
		bad("destination %q: want one of %v, or none for all", f.Destination, Destinations())
	}
	switch f.Direction {
	case "", Do, Undo, Lookup:
	default:
		bad("direction %q: want do, undo, lookup, or none for do and undo", f.Direction)
	}
	if f.Attempt < 0 || f.Next < 0 || f.Duration < 0 || f.For < 0 || f.RetryAfter < 0 {
		bad("attempt, next, duration, for and retryAfter: want 0 or more")
	}
	if err := f.Probability.validate(); err != nil {
		bad("probability: %w", err)
	}
	problems = append(problems, f.validateAction())
	return errors.Join(problems...)
}

func (f Fault) validateAction() error {
	switch f.Action {
	case Lose, Reset, Unavailable, StallBody:
	case Hang:
		switch f.At {
		case "", HangBefore, HangDuring, HangAfter:
		default:
			return fmt.Errorf("at %q: want before, during or after", f.At)
		}
	case ReplyWith:
		if f.Status < 200 || f.Status > 599 {
			return fmt.Errorf("status %d: want 200 to 599", f.Status)
		}
	case RefuseConnection:
		return f.validateRefusal()
	default:
		return fmt.Errorf("action %q: want lose, hang, reply, unavailable, stall-body, reset or refuse-connection", f.Action)
	}
	if f.Mode != "" {
		return fmt.Errorf("mode is for refuse-connection only")
	}
	return nil
}

// validateRefusal refuses conditions that cannot be known before a request is read.
func (f Fault) validateRefusal() error {
	switch f.Mode {
	case "", RefuseByReset:
	case RefuseByClosing:
		if f.Next > 0 || f.Probability > 0 {
			return errors.New("mode closed: a closed listener counts nothing, so next and probability do not apply; use for, or remove the fault")
		}
	default:
		return fmt.Errorf("mode %q: want reset or closed", f.Mode)
	}
	if f.Destination == "" || f.Direction != "" || f.Aggregate != "" || f.Attempt > 0 {
		return errors.New("refuse-connection: a connection has a destination, but no direction, aggregate or attempt; use action reset for those")
	}
	return nil
}

// matches checks every condition but chance and count.
func (f *Fault) matches(c *Call) bool {
	if c.Destination == "" || f.Direction == "" && c.Direction == Lookup {
		return false
	}
	return (f.Destination == "" || f.Destination == c.Destination) &&
		(f.Direction == "" || f.Direction == c.Direction) &&
		(f.Aggregate == "" || f.Aggregate == c.Aggregate) &&
		(f.Attempt == 0 || f.Attempt == c.Attempt)
}

// label is how the ledger names the fault.
func (f *Fault) label() string {
	if f == nil {
		return ""
	}
	return f.ID + " " + string(f.Action)
}

func (f *Fault) is(a Action) bool { return f != nil && f.Action == a }

func (f *Fault) hangsAt(at string) bool {
	return f.is(Hang) && (f.At == at || f.At == "" && at == HangBefore)
}

// isLost reports whether the client gets no whole reply.
func (f *Fault) isLost() bool { return f.is(Lose) || f.is(StallBody) }

func (f *Fault) wait() time.Duration { return time.Duration(f.Duration) }
