package saga

import "errors"

// Errors of transitions that name a step.
var (
	// ErrNoStep is returned where the saga or the step does not exist.
	ErrNoStep = errors.New("no such step")
	// ErrNotClaimable is returned by Claim where the step must not be sent now. The step may have been moved.
	ErrNotClaimable = errors.New("step is not claimable")
	// ErrFenced is returned for a result that came under an epoch that is not the step's, and is no success (G5).
	ErrFenced = errors.New("the step has moved on")
)

// Claim makes the step CALLING for the worker until lease, and returns its new epoch. Every condition is repeated here, under
// the lock: the candidate was chosen without it, and an older event may have come since (G8).
func (a *Aggregate) Claim(env Env, id ID, dest string, dir Direction, worker string, lease Instant) (int64, error) {
	s, t := a.lookup(id, dest, dir)
	if t == nil {
		return 0, ErrNoStep
	}
	if t.Due > env.Now || !a.mayClaim(s, t) {
		return 0, ErrNotClaimable
	}
	asks := t.State == Resolving && t.Rules.asks(dir)
	if !asks && t.forgotten(env) {
		t.park("may have happened, and the destination no longer remembers the key")
		a.advance(env)
		return 0, ErrNotClaimable
	}
	if t.State == Ready && !a.inTurn(s, t) && a.skip != skipRecheck {
		t.State = Waiting
		a.advance(env)
		return 0, ErrNotClaimable
	}
	t.State = Calling
	t.Epoch++
	t.Worker, t.Lease, t.Due, t.Asking = worker, lease, 0, asks
	if t.FirstAttempt == 0 {
		t.FirstAttempt = env.Now
	}
	if !asks {
		t.Attempt++
		t.SentUntil = max(t.SentUntil, lease)
		if t.FirstSent == 0 {
			t.FirstSent = env.Now
		}
	}
	a.advance(env)
	return t.Epoch, nil
}

// mayClaim tells whether the states of step and saga allow a claim.
func (a *Aggregate) mayClaim(s *Saga, t *Step) bool {
	forward := s.State == Running || t.Late && s.State == Completed
	switch {
	case t.State == Resolving && t.Dir == Do:
		return t.Rules.resolvable(Do) && (forward || s.State.Unwinding())
	case t.State != Ready:
		return false
	case t.Dir == Undo:
		return s.State == Compensating
	default:
		return forward
	}
}

// inTurn tells whether a step's order condition holds.
func (a *Aggregate) inTurn(s *Saga, t *Step) bool {
	if t.Dir == Undo {
		return a.undoInTurn(s, t)
	}
	return a.doInTurn(s, t)
}

// doInTurn: the destinations it comes after are done, and it does not queue behind earlier events of its aggregate.
func (a *Aggregate) doInTurn(s *Saga, t *Step) bool {
	for _, dep := range t.Rules.After {
		if d := s.Step(dep, Do); d != nil && !d.passed() {
			return false
		}
	}
	return !a.queues(s, t)
}

// Queues tells whether the do step waits for earlier events of its aggregate.
func (a *Aggregate) Queues(id ID, dest string) bool {
	s, t := a.lookup(id, dest, Do)
	return t != nil && t.State == Waiting && a.queues(s, t)
}

// queues: something earlier of the aggregate is being unwound, or is open at the destination (G8).
func (a *Aggregate) queues(s *Saga, t *Step) bool {
	for _, e := range a.Sagas {
		if !before(e, s) {
			break
		}
		if e.State.Unwinding() {
			return true
		}
		if t.Rules.Ordering == OrderNone {
			continue
		}
		if d := e.Step(t.Dest, Do); d != nil && d.holds(t.Rules.Ordering) {
			return true
		}
		if u := e.Step(t.Dest, Undo); u != nil && !u.State.Settled() {
			return true
		}
	}
	return false
}

// holds tells whether an open do step holds later events back.
func (t *Step) holds(o Ordering) bool {
	return !t.State.Settled() && !t.Superseded && !(t.State == Parked && o == OrderPass)
}

// forgotten tells whether a repeat could do the work twice because the destination's memory of the key has ended.
func (t *Step) forgotten(env Env) bool {
	return t.Maybe && t.Rules.Window > 0 && env.Now >= t.FirstSent.Add(t.Rules.Window)
}

// passed tells whether a do step lets those after it go on.
func (t *Step) passed() bool {
	return t.State == Succeeded || t.State == Skipped || t.State == Refused && t.Rules.OnRefused == RefusalIgnored
}

func (a *Aggregate) lookup(id ID, dest string, dir Direction) (*Saga, *Step) {
	s := a.Find(id)
	if s == nil {
		return nil, nil
	}
	return s, s.Step(dest, dir)
}

func (t *Step) park(reason string) {
	t.State, t.Reason, t.Due = Parked, reason, 0
}
