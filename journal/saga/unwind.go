package saga

import "slices"

// Cancel takes in a cancel of every event of the aggregate below version: a tombstone for those that have not been read, and
// the unwinding of those that run or are completed. Repeating it changes nothing.
func (a *Aggregate) Cancel(env Env, version int64, reason string) {
	a.Tombstone = max(a.Tombstone, version)
	for _, s := range a.Sagas {
		if s.Version < version && (s.State == Running || s.State == Completed) {
			s.CancelVersion = version
			a.startFailing(env, s, Step{}, 0, reason)
		}
	}
	a.advance(env)
}

// Begin turns a FAILING saga COMPENSATING; in any other state it changes nothing, so that a message may come twice or late.
func (a *Aggregate) Begin(env Env, id ID) {
	if s := a.Find(id); s != nil && s.State == Failing {
		s.State = Compensating
	}
	a.advance(env)
}

// failFrom unwinds what a refusal at step t of saga s reaches: a change its own saga, a create all later ones of the aggregate
// as well.
func (a *Aggregate) failFrom(env Env, s *Saga, t *Step, c Class, reason string) {
	cause := *t
	a.startFailing(env, s, cause, c, reason)
	if s.Role != Create || a.skip == skipScope {
		return
	}
	for _, x := range a.Sagas {
		if before(s, x) && (x.State == Running || x.State == Completed) {
			a.startFailing(env, x, cause, c, "the create event of its aggregate was refused")
		}
	}
}

func (a *Aggregate) startFailing(env Env, s *Saga, cause Step, c Class, reason string) {
	s.State, s.Reason, s.FailingSince = Failing, reason, env.Now
	a.fence(env, s)
	a.emitStep(CompensationRequested, s, &cause, c)
}

// fence stops the forward path: what certainly did not happen is abandoned, what may have happened must be found out. Attempts
// that are out are awaited.
func (a *Aggregate) fence(env Env, s *Saga) {
	for _, t := range s.Steps {
		if t.Dir != Do {
			continue
		}
		switch t.State {
		case Expected, Waiting, Ready, Parked:
			switch {
			case !t.Maybe || a.skip == skipMaybe:
				t.settle(Abandoned, "the saga was stopped")
			case t.Rules.resolvable(Do):
				t.State = Resolving
				t.Due = max(t.Due, env.Now)
			case t.State != Parked:
				t.park("may have happened, and the destination cannot be asked again")
			}
		}
	}
}

// part is one destination's part in an unwinding saga: its do step and, once made, its undo step.
type part struct {
	saga     *Saga
	do, undo *Step
}

// parts lists every do step of every saga that is on its way back.
func (a *Aggregate) parts() []part {
	var out []part
	for _, s := range a.Sagas {
		if !s.State.Unwinding() {
			continue
		}
		for _, t := range s.Steps {
			if t.Dir == Do {
				out = append(out, part{s, t, s.Step(t.Dest, Undo)})
			}
		}
	}
	return out
}

// pending tells whether something of the part is still to be undone.
func (p part) pending() bool {
	return p.do.State == Succeeded && (p.undo == nil || !p.undo.State.Settled())
}

// open tells whether it is not known whether the part happened.
func (p part) open() bool { return p.do.State == Resolving || p.do.State == Parked }

// stuck tells whether the part cannot go on by itself now.
func (p part) stuck() bool {
	return p.open() || p.undo != nil && !p.undo.State.Settled() && (p.undo.State == Parked || p.undo.Outage)
}

// dependsOn tells whether p was done because q was done before: it comes after q in its plan, or is a later event at q's
// destination or at one after it. What is known to have been done before q was not done because of it, whatever the plan says: two
// events may reach their own destinations in either order, and a destination may join late.
func (p part) dependsOn(q part) bool {
	if p.do.Seq != 0 && q.do.Seq != 0 && p.do.Seq < q.do.Seq {
		return false
	}
	if p.saga == q.saga {
		return p.do.Dest != q.do.Dest && p.saga.comesAfter(p.do, q.do.Dest)
	}
	return before(q.saga, p.saga) && (p.do.Dest == q.do.Dest || p.saga.comesAfter(p.do, q.do.Dest))
}

// comesAfter follows `after` transitively within the plan.
func (s *Saga) comesAfter(t *Step, dest string) bool {
	if slices.Contains(t.Rules.After, dest) {
		return true
	}
	for _, dep := range t.Rules.After {
		if d := s.Step(dep, Do); d != nil && s.comesAfter(d, dest) {
			return true
		}
	}
	return false
}

// undoInTurn tells whether the undo step's turn has come (G7): everything that was done after it is undone, except what cannot go
// on now and did not depend on it.
func (a *Aggregate) undoInTurn(s *Saga, t *Step) bool {
	all := a.parts()
	i := slices.IndexFunc(all, func(p part) bool { return p.saga == s && p.undo == t })
	if i < 0 {
		return false
	}
	me := all[i]
	for j, p := range all {
		if j == i {
			continue
		}
		if p.do.State == Calling && a.skip != skipAwait {
			return false
		}
		if a.skip == skipReverse {
			continue
		}
		if p.dependsOn(me) {
			if p.open() || p.pending() {
				return false
			}
			continue
		}
		if p.pending() && p.do.Seq > me.do.Seq && !held(all, p) {
			return false
		}
	}
	return true
}

// held tells whether the part is stuck, or waits for one that is: directly, or for one that waits in its turn.
func held(all []part, p part) bool {
	if p.stuck() {
		return true
	}
	for _, q := range all {
		if (q.open() || q.pending()) && q.dependsOn(p) && held(all, q) {
			return true
		}
	}
	return false
}
