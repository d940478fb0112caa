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
	// ErrMoves is returned by Prove, Done, Disprove and Waive for a step that is settled, or that goes on by itself: its group has to read
	// it, it waits its turn, or an attempt is out.
	ErrMoves = errors.New("step is settled or goes on by itself")
	// ErrEarly is returned by Done for a step whose turn has not come: what it comes after, or for an undo what depended on it, is to
	// be settled first.
	ErrEarly = errors.New("what comes before it is not settled")
	// ErrCertain is returned by Disprove for a step that is known not to have happened.
	ErrCertain = errors.New("step is known not to have happened")
	// ErrEnding is returned by Compensate for a saga that is unwound already, or on its way.
	ErrEnding = errors.New("saga is unwound, or on its way back")
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
	case t.Maybe && !t.Rules.resolvable(dir), t.forgotten(env) && !t.Rules.asks(dir):
		return ErrUnresolved
	case dir == Undo && s.Step(dest, Do).Revert == RevertBroken:
		return ErrNoUndo
	}
	t.afresh(env)
	if dir == Do && (s.State.Unwinding() || t.Maybe && t.Rules.asks(dir)) {
		t.State = Resolving
	}
	a.advance(env)
	return nil
}

// afresh lets the step go on in its turn, with fresh attempts and patience.
func (t *Step) afresh(env Env) {
	t.State = Waiting
	t.Attempt, t.FirstAttempt, t.Outage, t.Due, t.Reason = 0, 0, false, env.Now, ""
}

// Prove settles a step as done: an operator has seen at the destination that it happened. revert is what undoing a do step takes from
// now on.
func (a *Aggregate) Prove(env Env, id ID, dest string, dir Direction, revert Revert) error {
	_, t := a.lookup(id, dest, dir)
	if t == nil {
		return ErrNoStep
	}
	return a.prove(env, id, t, revert, "an operator saw that it happened")
}

// Done settles a step that an operator has done by hand, outside of Ebb; reference says where. It must be its turn: what is done, or
// undone, before that could meet what is still under way.
func (a *Aggregate) Done(env Env, id ID, dest string, dir Direction, revert Revert, reference string) error {
	s, t := a.lookup(id, dest, dir)
	switch {
	case t == nil:
		return ErrNoStep
	case t.State == Ready && dir == Do && !a.inTurn(s, t), dir == Undo && !a.undoInTurn(s, t):
		return ErrEarly
	}
	return a.prove(env, id, t, revert, "done by hand: "+reference)
}

func (a *Aggregate) prove(env Env, id ID, t *Step, revert Revert, outcome string) error {
	if !t.standsStill() {
		return ErrMoves
	}
	a.succeed(a.Find(id), t, Result{Class: ClassSucceeded, Revert: revert})
	t.Outcome = outcome
	a.advance(env)
	return nil
}

// Disprove says of a step that may have happened that it did not, and cannot any more: an operator has seen it at the destination. The
// step goes on with fresh attempts, or is given up where its saga is unwound. Nobody checks that an attempt under way does not land
// after all; should it be heard of, it is undone or counts, as any success does (G5).
func (a *Aggregate) Disprove(env Env, id ID, dest string, dir Direction) error {
	s, t := a.lookup(id, dest, dir)
	switch {
	case t == nil:
		return ErrNoStep
	case !t.standsStill():
		return ErrMoves
	case !t.Maybe:
		return ErrCertain
	}
	t.Maybe = false
	switch {
	case dir == Do && s.State.Unwinding():
		t.settle(Abandoned, "an operator saw that it did not happen")
	case dir == Do && (t.Superseded || a.claimedAfter(s, t) != nil):
		t.park("did not happen, and is superseded by a later event")
		t.Superseded = true
	case dir == Undo && s.Step(dest, Do).Revert == RevertBroken:
		t.park("did not happen, and has no request to send")
	default:
		t.afresh(env)
	}
	a.advance(env)
	return nil
}

// Waive settles a step as needless: what it should do, or undo, is left as it is. A success that becomes known later counts all the same.
func (a *Aggregate) Waive(env Env, id ID, dest string, dir Direction, reason string) error {
	_, t := a.lookup(id, dest, dir)
	switch {
	case t == nil:
		return ErrNoStep
	case !t.standsStill() && t.State != Expected:
		return ErrMoves
	}
	t.settle(Skipped, "waived")
	t.Reason = reason
	a.advance(env)
	return nil
}

// standsStill tells whether nothing of the step is out, and it is due or cannot go on.
func (t *Step) standsStill() bool {
	return t.State == Parked || t.State == Resolving || t.State == Ready
}

// Compensate unwinds a saga, and what came after it if it is a create, as its own refusal would.
func (a *Aggregate) Compensate(env Env, id ID, reason string) error {
	s := a.Find(id)
	switch {
	case s == nil:
		return ErrNoStep
	case s.State != Running && s.State != Completed:
		return ErrEnding
	}
	a.failFrom(env, s, &Step{}, 0, reason)
	a.advance(env)
	return nil
}

// Touch moves what only the passing of time moves: deadlines, and the compensator's own look at sagas whose message is late.
func (a *Aggregate) Touch(env Env) { a.advance(env) }
