package saga

import (
	"slices"
	"time"
)

// Aggregate is what the journal knows of one aggregate, loaded under its lock. Transitions change it in place; the emissions
// they cause are collected until TakeEmissions.
type Aggregate struct {
	Type string
	Key  string
	// Sagas are in ascending order of Version, then of ID. An aggregate with a long history may be loaded without the sagas that the
	// transition at hand cannot decide by or change. Those are the ones that have ended, need no attention, have no open late step and are
	// no unwound create; except the saga that the transition is about; for Ingest, sagas of a version that is not below the event's (a later
	// one that was sent supersedes it); for Record, completed sagas later than an open create (its refusal unwinds them); and for Cancel
	// and what operators do, all.
	Sagas []*Saga
	// SeqBase is above every Seq that was ever given, from a database sequence that was asked under the lock; zero where all sagas
	// are loaded.
	SeqBase int64
	// Tombstone is the version of the latest cancel: events below it are dead. Zero for none.
	Tombstone int64

	emissions []Emission
	skip      mutation
}

// Saga is the handling of one event of the aggregate by its plan.
type Saga struct {
	ID        ID
	EventType string
	Role      Role
	Version   int64
	State     State
	// Revision counts the saga's published events; readers ignore lower ones.
	Revision int64
	// Attention is the reason why an operator must look, empty for none.
	Attention string
	// Reason tells why the saga is or was unwound.
	Reason string
	// CancelVersion is the version of the cancel that unwound the saga, zero if none did.
	CancelVersion int64
	// FailingSince is when the saga became FAILING, none before.
	FailingSince Instant
	// Steps are the do steps in the plan's order, then undo steps in the order of their making.
	Steps []*Step
}

// Step is one direction of one destination's part in a saga.
type Step struct {
	Dest  string
	Dir   Direction
	State StepState
	// Maybe is set once an attempt may have had its effect without our knowing (G3).
	Maybe bool
	// Attempt counts charged attempts; Epoch counts all claims and fences their results.
	Attempt int
	Epoch   int64
	Worker  string
	// Lease is when the current claim runs out.
	Lease Instant
	// Asking marks a claim that looks the step up at its destination instead of sending its request.
	Asking bool
	// SentUntil is when the lease of the last attempt that may have sent the request ran out, or will.
	SentUntil Instant
	// Due is when the step may next be claimed.
	Due Instant
	// FirstAttempt starts the destination's patience with this step.
	FirstAttempt Instant
	// FirstSent is the earliest moment at which a byte may have left under the step's key; nothing resets it.
	FirstSent Instant
	// ExpectBy is when an EXPECTED step gets attention.
	ExpectBy Instant
	// Seq is the place of a success in the aggregate's completion order (G7); zero before it.
	Seq int64
	// SpecVersion is the destination's version that the step is pinned to.
	SpecVersion int
	// Late marks a step that joined a saga after its plan was made (backfill).
	Late bool
	// Superseded marks a parked step whose event came after a later one had been claimed: it holds nothing back.
	Superseded bool
	// Outage marks a step whose last attempt fell to its destination's outage: it cannot go on now.
	Outage bool
	// Revert tells what undoing a succeeded do step takes.
	Revert Revert
	// Outcome names how the step settled, in words for people; Reason says why it is parked, refused or retried.
	Outcome string
	Reason  string
	// Rules are those of the destination's version that the step is pinned to.
	Rules *Rules
}

// Idempotency says what a destination promises about repeating a call under the same key.
type Idempotency uint8

// The promises.
const (
	NotIdempotent Idempotency = iota // a repeat may do the work again
	SuccessOnly                      // a success is final for its key, a refusal is not remembered
	Idempotent                       // the first processed answer is final for its key, refusals too
)

// OnRefused says what a refusal means for the saga.
type OnRefused uint8

// What a refusal means.
const (
	RefusalCompensates OnRefused = iota
	RefusalParks
	RefusalIgnored
)

// OnExhausted says what happens when patience with a destination in outage runs out.
type OnExhausted uint8

// What happens then.
const (
	ExhaustedParks OnExhausted = iota
	ExhaustedCompensates
)

// Ordering says how later events of an aggregate wait for earlier ones at a destination (G8).
type Ordering uint8

// The orderings.
const (
	OrderHold Ordering = iota // an open earlier step holds later ones, a parked one too
	OrderPass                 // later events pass a parked step, which can then not be sent any more
	OrderNone                 // events go in any order
)

// Rules are the parts of a destination's specification that decide transitions.
type Rules struct {
	// After names the destinations whose steps come first, where they are in the plan.
	After       []string
	Idempotency Idempotency
	// Lookup says that the destination can be asked whether a do step happened; that it finds nothing counts once Settle has passed
	// since the last attempt's lease.
	Lookup bool
	Settle time.Duration
	// Window is how long the destination remembers a key, counted from the first send; zero means for ever.
	Window      time.Duration
	Ordering    Ordering
	OnRefused   OnRefused
	OnExhausted OnExhausted
	// MaxAttempts and MaxUndoAttempts bound charged attempts, at least 1.
	MaxAttempts     int
	MaxUndoAttempts int
	// BackoffBase doubles per attempt up to BackoffMax.
	BackoffBase time.Duration
	BackoffMax  time.Duration
	// Patience bounds the waiting for a destination in outage, from the first attempt; zero means no bound.
	Patience time.Duration
}

func (r *Rules) repeatable() bool { return r.Idempotency != NotIdempotent }

// resolvable tells whether it can be found out if a step of the direction happened.
func (r *Rules) resolvable(dir Direction) bool { return r.repeatable() || r.asks(dir) }

// asks tells whether that is found out by a lookup.
func (r *Rules) asks(dir Direction) bool { return r.Lookup && dir == Do }

// Env is what a transition needs from outside.
type Env struct {
	// Now is the database's time.
	Now Instant
	// Jitter returns a random part of at most the given duration; nil means none.
	Jitter func(atMost time.Duration) time.Duration
}

// Find returns the saga with the id, or nil.
func (a *Aggregate) Find(id ID) *Saga {
	for _, s := range a.Sagas {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Step returns the saga's step of the destination and direction, or nil.
func (s *Saga) Step(dest string, dir Direction) *Step {
	for _, t := range s.Steps {
		if t.Dir == dir && t.Dest == dest {
			return t
		}
	}
	return nil
}

// insert keeps Sagas in order.
func (a *Aggregate) insert(s *Saga) {
	i, _ := slices.BinarySearchFunc(a.Sagas, s, compareSagas)
	a.Sagas = slices.Insert(a.Sagas, i, s)
}

func compareSagas(x, y *Saga) int {
	switch {
	case x.Version != y.Version:
		if x.Version < y.Version {
			return -1
		}
		return 1
	default:
		return slices.Compare(x.ID[:], y.ID[:])
	}
}

// Sort puts Sagas into the order that transitions rely on.
func (a *Aggregate) Sort() { slices.SortFunc(a.Sagas, compareSagas) }

// LateOpen tells whether a step that joined later is not settled yet.
func (s *Saga) LateOpen() bool {
	for _, t := range s.Steps {
		if t.Late && !t.State.Settled() {
			return true
		}
	}
	return false
}

// nextSeq is the place of the next success: one above all there are. The aggregate's lock makes it unique.
func (a *Aggregate) nextSeq() int64 {
	top := a.SeqBase
	for _, s := range a.Sagas {
		for _, t := range s.Steps {
			top = max(top, t.Seq)
		}
	}
	return top + 1
}

// before tells whether x comes before y in the aggregate's order of events.
func before(x, y *Saga) bool { return compareSagas(x, y) < 0 }
