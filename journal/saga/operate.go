package saga

import "errors"

// Errors of operator moves.
var (
	// ErrNotParked is returned by Retry for a step that is not parked.
	ErrNotParked = errors.New("step is not parked")
	// ErrUnresolved is returned by Retry for a step that may have happened at a destination that does not promise one effect per
	// key: sending it again could do the work twice.
	ErrUnresolved = errors.New("step may have happened and its destination is not idempotent")
	// ErrSuperseded is returned by Retry for a step whose event came after a later one had been sent.
	ErrSuperseded = errors.New("step is superseded by a later event")
	// ErrNoUndo is returned by Retry for an undo step that has no request to send.
	ErrNoUndo = errors.New("undo step has no request to send")
)

// Retry lets a parked step go on, with fresh attempts and patience, under the same key.
func (a *Aggregate) Retry(env Env, id ID, dest string, dir Direction) error {
	s, t := a.lookup(id, dest, dir)
	switch {
	case t == nil:
		return ErrNoStep
	case t.State != Parked:
		return ErrNotParked
	case t.Superseded, dir == Do && !s.State.Unwinding() && a.claimedAfter(s, t) != nil:
		return ErrSuperseded
	case t.Maybe && !t.Rules.repeatable(), t.forgotten(env):
		return ErrUnresolved
	case dir == Undo && s.Step(dest, Do).Revert == RevertBroken:
		return ErrNoUndo
	}
	t.Attempt, t.FirstAttempt, t.Outage, t.Due, t.Reason = 0, 0, false, env.Now, ""
	t.State = Waiting
	if dir == Do && s.State.Unwinding() {
		t.State = Resolving
	}
	a.advance(env)
	return nil
}

// Touch moves what only the passing of time moves: deadlines, and the compensator's own look at sagas whose message is late.
func (a *Aggregate) Touch(env Env) { a.advance(env) }
