package saga

// Event is what a reader has taken from Kafka.
type Event struct {
	ID      ID
	Type    string
	Role    Role
	Version int64
}

// Planned is one destination of an event's plan.
type Planned struct {
	Dest        string
	SpecVersion int
	Rules       *Rules
}

// Ingest takes in that the group of destination dest has read the event. The first group to read it makes the saga with an
// EXPECTED step for every destination of the plan, which get attention if their groups have not read it by expectBy.
// Reading again changes nothing (G11).
//
// A saga under a tombstone, or later than a create that was refused, is born COMPENSATED: nothing of it is ever called.
func (a *Aggregate) Ingest(env Env, ev Event, plan []Planned, dest string, expectBy Instant) {
	s := a.Find(ev.ID)
	if s == nil {
		s = a.open(env, ev, plan, expectBy)
	}
	t := s.Step(dest, Do)
	if t == nil {
		t = a.join(s, plan, dest)
	}
	if t != nil && t.State == Expected {
		t.State, t.ExpectBy = Waiting, 0
		if later := a.claimedAfter(s, t); later != nil {
			t.park("superseded: a later event of the aggregate was sent first")
			t.Superseded = true
		}
	}
	a.advance(env)
}

// open makes the saga of an event that no group had read.
func (a *Aggregate) open(env Env, ev Event, plan []Planned, expectBy Instant) *Saga {
	s := &Saga{ID: ev.ID, EventType: ev.Type, Role: ev.Role, Version: ev.Version, State: Running}
	for _, p := range plan {
		s.Steps = append(s.Steps, &Step{Dest: p.Dest, Dir: Do, State: Expected, ExpectBy: expectBy, SpecVersion: p.SpecVersion, Rules: p.Rules})
	}
	a.insert(s)
	if reason := a.stillborn(s); reason != "" {
		s.Reason = reason
		if s.Version < a.Tombstone {
			s.CancelVersion = a.Tombstone
		}
		a.fence(env, s)
		s.State = Compensated
		a.emitSaga(SagaCompensated, s)
	}
	return s
}

// stillborn tells why an event that is read now must not be carried out, or is empty.
func (a *Aggregate) stillborn(s *Saga) string {
	if s.Version < a.Tombstone && a.skip != skipTombstone {
		return "cancelled before it was read"
	}
	for _, c := range a.Sagas {
		refused := c.Role == Create && c.CancelVersion == 0 && (c.State.Unwinding() || c.State == Compensated)
		if refused && before(c, s) && a.skip != skipScope {
			return "the create event of its aggregate was refused"
		}
	}
	return ""
}

// join adds the step of a destination that was not in the plan when the saga was made: a backfill.
func (a *Aggregate) join(s *Saga, plan []Planned, dest string) *Step {
	for _, p := range plan {
		if p.Dest != dest {
			continue
		}
		t := &Step{Dest: dest, Dir: Do, State: Expected, Late: true, SpecVersion: p.SpecVersion, Rules: p.Rules}
		if s.State != Running && s.State != Completed {
			t.State, t.Outcome = Abandoned, "the saga was unwound before the destination joined"
		}
		s.Steps = append(s.Steps, t)
		return t
	}
	return nil
}

// claimedAfter returns a later saga whose step at the destination has ever been claimed, or was proven to be done, or nil, also where
// order does not matter.
func (a *Aggregate) claimedAfter(s *Saga, t *Step) *Saga {
	if t.Rules.Ordering == OrderNone {
		return nil
	}
	for _, x := range a.Sagas {
		if l := x.Step(t.Dest, Do); l != nil && before(s, x) && (l.Epoch > 0 || l.State == Succeeded) {
			return x
		}
	}
	return nil
}
