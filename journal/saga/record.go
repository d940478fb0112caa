package saga

import (
	"fmt"
	"time"
)

// Class is what the end of an attempt means, see design 7.
type Class uint8

// The classes of ends.
const (
	ClassSucceeded     Class = iota + 1
	ClassSkipped             // nothing to send: a condition is false
	ClassRefused             // a definite no
	ClassRetry               // certainly not processed, worth another attempt
	ClassNotSent             // certainly no byte left: the destination's outage
	ClassUnknown             // may have happened
	ClassMisconfigured       // certainly not processed, our or the destination's set-up is at fault
	ClassParked              // the request cannot be rendered: no call was made
	ClassPending             // accepted, and not done yet
	ClassNotFound            // a lookup found nothing
)

var classNames = [...]string{
	"", "SUCCEEDED", "SKIPPED", "REFUSED", "RETRY", "NOT_SENT", "UNKNOWN", "MISCONFIGURED", "PARKED", "PENDING", "NOT_FOUND",
}

func (c Class) String() string { return name(classNames[:], int(c)) }

// Result is how an attempt ended.
type Result struct {
	Class  Class
	Reason string
	// RetryAfter is the wait that the destination asked for, zero for none; it is taken as given.
	RetryAfter time.Duration
	// Revert is what undoing takes, for a success of a do step (G6).
	Revert Revert
	// Healthy says that the destination answered another saga's call normally since this step's first fault: then a fault is the
	// step's own, else it is the destination's.
	Healthy bool
	// Outage says that the destination is known to be down, by its breaker: the attempt was a probe and is not charged.
	Outage bool
}

// Record stores how the attempt of the epoch ended. A result under another epoch is refused with ErrFenced and changes nothing,
// except that a success is proof whoever brings it (G5).
func (a *Aggregate) Record(env Env, id ID, dest string, dir Direction, epoch int64, r Result) error {
	s, t := a.lookup(id, dest, dir)
	if t == nil {
		return ErrNoStep
	}
	mine := t.State == Calling && t.Epoch == epoch || a.skip == skipFence
	if !mine && r.Class != ClassSucceeded {
		return ErrFenced
	}
	switch {
	case r.Class == ClassSucceeded:
		a.succeed(s, t, r)
	case t.Asking:
		a.endLookup(env, s, t, r)
	case dir == Undo:
		a.endUndo(env, t, r)
	default:
		a.endDo(env, s, t, r)
	}
	a.advance(env)
	return nil
}

// succeed settles a step by proof. A step that was settled otherwise is done all the same: in an unwound saga it is undone.
func (a *Aggregate) succeed(s *Saga, t *Step, r Result) {
	if t.State == Succeeded {
		return
	}
	t.settle(Succeeded, "succeeded")
	if t.Dir == Undo {
		a.emitStep(StepUndone, s, t, r.Class)
		return
	}
	t.Seq = a.nextSeq()
	t.Revert = r.Revert
	a.emitStep(StepSucceeded, s, t, r.Class)
	if s.State == Compensated {
		s.State = Compensating
	}
}

// settle moves the step to an end state.
func (t *Step) settle(st StepState, outcome string) {
	t.State, t.Outcome, t.Reason = st, outcome, ""
	t.Maybe, t.Outage, t.Superseded = false, false, false
	t.Worker, t.Lease, t.Due, t.ExpectBy, t.Asking = "", 0, 0, 0, false
}

// endDo handles every end of a do attempt but success.
func (a *Aggregate) endDo(env Env, s *Saga, t *Step, r Result) {
	t.release()
	t.Reason = r.Reason
	if (r.Class == ClassUnknown || r.Class == ClassPending) && a.skip != skipMaybe {
		t.Maybe = true
	}
	switch r.Class {
	case ClassSkipped:
		t.settle(Skipped, "skipped: "+r.Reason)
	case ClassParked:
		t.Attempt--
		a.stop(s, t, r.Reason)
	case ClassRefused:
		a.refused(env, s, t, r)
	case ClassNotSent, ClassMisconfigured:
		t.Attempt--
		a.outage(env, s, t, r)
	case ClassPending:
		a.pending(env, t, r)
	default:
		a.again(env, s, t, r)
	}
}

// release takes the claim off the step.
func (t *Step) release() { t.Worker, t.Lease, t.Outage, t.Asking = "", 0, false, false }

// pending lets a step be polled that its destination has accepted and not done yet.
func (a *Aggregate) pending(env Env, t *Step, r Result) {
	switch {
	case t.outOfPatience(env):
		t.park("patience is used up: " + r.Reason)
	case t.Rules.asks(t.Dir):
		t.resolve(env, r)
	default:
		t.park("accepted, and there is no lookup to ask how it ended: " + r.Reason)
	}
}

// resolve lets the step be found out about.
func (t *Step) resolve(env Env, r Result) {
	t.State = Resolving
	t.Due = t.next(env, r.RetryAfter)
}

// endLookup handles every end of a lookup but that the step was found done. Only a definite answer clears Maybe: that the destination
// refused it for good, or, once nothing can be under way any more, that it refused it or does not know it.
func (a *Aggregate) endLookup(env Env, s *Saga, t *Step, r Result) {
	t.release()
	t.Reason = r.Reason
	settledAt := t.SentUntil.Add(t.Rules.Settle)
	settled := env.Now >= settledAt || a.skip == skipSettle
	switch {
	case r.Class == ClassRefused && (settled || t.Rules.Idempotency == Idempotent):
		a.refuse(env, s, t, r.Class, r.Reason)
	case r.Class == ClassNotFound && settled:
		a.notDone(env, s, t)
	case r.Class == ClassParked:
		t.park("may have happened, and cannot be looked up: " + r.Reason)
	case t.outOfPatience(env):
		t.park("may have happened, and its lookup does not tell: " + r.Reason)
	default:
		t.resolve(env, r)
		if r.Class == ClassNotFound || r.Class == ClassRefused {
			t.Due = max(t.Due, settledAt)
		}
	}
}

// notDone lets a step go on that certainly did not happen, or gives it up.
func (a *Aggregate) notDone(env Env, s *Saga, t *Step) {
	t.Maybe = false
	switch {
	case s.State.Unwinding():
		t.settle(Abandoned, "not found at its destination")
	case t.Attempt < t.Rules.MaxAttempts:
		a.later(env, s, t, 0)
	default:
		a.refuse(env, s, t, ClassRetry, fmt.Sprintf("retries exhausted after %d attempts: not found at its destination", t.Attempt))
	}
}

// stop parks a do step; in a saga that is being unwound, what certainly did not happen is simply given up.
func (a *Aggregate) stop(s *Saga, t *Step, reason string) {
	if s.State.Unwinding() && !t.Maybe {
		t.settle(Abandoned, reason)
		return
	}
	t.park(reason)
}

// refused handles a definite no.
func (a *Aggregate) refused(env Env, s *Saga, t *Step, r Result) {
	if t.Maybe && t.Rules.Idempotency == SuccessOnly && a.skip != skipConfirm {
		// An earlier attempt may still land, and its success is not remembered as refused: a repeat proves nothing.
		if t.Rules.asks(t.Dir) {
			t.resolve(env, r)
			return
		}
		t.park("refused, but an earlier attempt may have happened: " + r.Reason)
		return
	}
	a.refuse(env, s, t, r.Class, r.Reason)
}

// refuse settles a do step as REFUSED and lets the rules say what that means for the saga.
func (a *Aggregate) refuse(env Env, s *Saga, t *Step, c Class, reason string) {
	parks := t.Rules.OnRefused == RefusalParks || t.Late
	if parks && (s.State == Running || s.State == Completed) {
		t.Maybe = false
		t.park("refused: " + reason)
		return
	}
	t.settle(Refused, "refused")
	t.Reason = reason
	a.emitStep(StepFailed, s, t, c)
	if s.State == Running && t.Rules.OnRefused == RefusalCompensates {
		a.failFrom(env, s, t, c, reason)
	}
}

// outage handles an end that is the destination's or the set-up's fault (G10): it is not charged and never a refusal.
func (a *Aggregate) outage(env Env, s *Saga, t *Step, r Result) {
	if r.Class == ClassMisconfigured && r.Healthy {
		a.stop(s, t, "misconfigured, while other sagas pass: "+r.Reason)
		return
	}
	if s.State.Unwinding() && !t.Maybe {
		t.settle(Abandoned, "not sent: "+r.Reason)
		return
	}
	t.Outage = true
	if !t.outOfPatience(env) {
		a.later(env, s, t, r.RetryAfter)
		return
	}
	a.impatient(env, s, t, r)
}

// impatient ends the waiting for a destination: what certainly did not happen may count as a refusal, if the rules say so.
func (a *Aggregate) impatient(env Env, s *Saga, t *Step, r Result) {
	reason := "patience is used up: " + r.Reason
	if t.Rules.OnExhausted == ExhaustedCompensates && !t.Maybe {
		a.refuse(env, s, t, r.Class, reason)
		return
	}
	a.stop(s, t, reason)
}

// again handles an end that counts as an attempt: RETRY and UNKNOWN.
func (a *Aggregate) again(env Env, s *Saga, t *Step, r Result) {
	switch {
	case t.Maybe && !t.Rules.repeatable() && t.Rules.asks(t.Dir):
		t.resolve(env, r)
	case t.Maybe && !t.Rules.repeatable():
		t.park("may have happened, and the destination cannot be asked again: " + r.Reason)
	case s.State.Unwinding() && !t.Maybe:
		t.settle(Abandoned, "not done: "+r.Reason)
	case t.outOfPatience(env):
		a.impatient(env, s, t, r)
	case r.Outage:
		a.uncharged(env, s, t, r)
	case t.Attempt < t.Rules.MaxAttempts || t.Maybe && s.State.Unwinding():
		a.later(env, s, t, r.RetryAfter)
	case !r.Healthy:
		a.uncharged(env, s, t, r)
	case t.Maybe:
		t.State = Resolving
		t.Due = t.next(env, r.RetryAfter)
	default:
		a.refuse(env, s, t, r.Class, fmt.Sprintf("retries exhausted after %d attempts: %s", t.Attempt, r.Reason))
	}
}

// uncharged lets a do step wait for its destination (G10).
func (a *Aggregate) uncharged(env Env, s *Saga, t *Step, r Result) {
	t.Attempt--
	t.Outage = true
	a.later(env, s, t, r.RetryAfter)
}

// later lets a do step be claimed again after its wait: READY while its saga runs, RESOLVING while it is unwound.
func (a *Aggregate) later(env Env, s *Saga, t *Step, wait time.Duration) {
	t.State = Ready
	if s.State.Unwinding() {
		t.State = Resolving
	}
	t.Due = t.next(env, wait)
}

// endUndo handles every end of an undo attempt but success. Nothing here settles the step: an undo ends by proof, or by an
// operator.
func (a *Aggregate) endUndo(env Env, t *Step, r Result) {
	t.release()
	t.Reason = r.Reason
	maxAttempts := t.Rules.MaxUndoAttempts
	switch r.Class {
	case ClassUnknown:
		t.Maybe = t.Maybe || a.skip != skipMaybe
		if !t.Rules.repeatable() {
			t.park("undo may have happened, and the destination cannot be asked again: " + r.Reason)
			return
		}
	case ClassNotSent, ClassMisconfigured:
		t.Attempt--
		if r.Class == ClassMisconfigured && r.Healthy {
			t.park("misconfigured, while other sagas pass: " + r.Reason)
			return
		}
		t.Outage = true
	case ClassRetry:
	case ClassParked:
		t.Attempt--
		t.park(r.Reason)
		return
	default:
		t.park("undo refused: " + r.Reason)
		return
	}
	switch {
	case t.outOfPatience(env):
		t.park("patience is used up: " + r.Reason)
		return
	case t.Attempt < maxAttempts && !r.Outage || t.Outage:
	case r.Outage, !r.Healthy:
		t.Attempt--
		t.Outage = true
	default:
		t.park(fmt.Sprintf("undo retries exhausted after %d attempts: %s", t.Attempt, r.Reason))
		return
	}
	t.State = Ready
	t.Due = t.next(env, r.RetryAfter)
}

// outOfPatience tells whether the destination has had its time with this step.
func (t *Step) outOfPatience(env Env) bool {
	return t.Rules.Patience > 0 && t.FirstAttempt != 0 && env.Now > t.FirstAttempt.Add(t.Rules.Patience)
}

// next is when the step is due again: exponential from the base by charged attempts, with jitter, and never earlier than the
// destination asked for.
func (t *Step) next(env Env, wait time.Duration) Instant {
	d := t.Rules.BackoffBase
	for i := 1; i < t.Attempt && d < t.Rules.BackoffMax; i++ {
		d *= 2
	}
	if t.Rules.BackoffMax > 0 {
		d = min(d, t.Rules.BackoffMax)
	}
	if env.Jitter != nil {
		d += env.Jitter(d / 4)
	}
	return env.Now.Add(max(d, wait))
}

// Release gives the claim of the epoch back on shutdown, without charge (G10). What was sent may have happened.
func (a *Aggregate) Release(env Env, id ID, dest string, dir Direction, epoch int64, sent bool) error {
	s, t := a.lookup(id, dest, dir)
	if t == nil {
		return ErrNoStep
	}
	if t.State != Calling || t.Epoch != epoch {
		return ErrFenced
	}
	if !t.Asking {
		t.Attempt--
	}
	a.back(env, s, t, sent, "interrupted by shutdown")
	a.advance(env)
	return nil
}

// Expire takes the claim of the epoch from a worker whose lease has run out. It counts as sent and is charged.
func (a *Aggregate) Expire(env Env, id ID, dest string, dir Direction) error {
	s, t := a.lookup(id, dest, dir)
	if t == nil {
		return ErrNoStep
	}
	if t.State != Calling || t.Lease > env.Now {
		return ErrFenced
	}
	a.back(env, s, t, true, "the lease of the worker ran out")
	if !t.State.Settled() && t.State != Parked && t.outOfPatience(env) {
		// A step that ends its worker each time must not go on for ever.
		t.park("patience is used up: " + t.Reason)
	}
	a.advance(env)
	return nil
}

// back puts a step whose attempt ended without any answer where it belongs.
func (a *Aggregate) back(env Env, s *Saga, t *Step, sent bool, reason string) {
	asked := t.Asking
	t.release()
	t.Reason = reason
	if sent && a.skip != skipMaybe {
		t.Maybe = true
	}
	switch {
	case asked, t.Maybe && !t.Rules.repeatable() && t.Rules.asks(t.Dir):
		t.State, t.Due = Resolving, env.Now
	case t.Maybe && !t.Rules.repeatable():
		t.park("may have happened, and the destination cannot be asked again: " + reason)
	case t.Dir == Do && s.State.Unwinding() && !t.Maybe:
		t.settle(Abandoned, "not sent: "+reason)
	case t.Dir == Do && s.State.Unwinding():
		t.State, t.Due = Resolving, env.Now
	default:
		t.State, t.Due = Ready, env.Now
	}
}
