package saga

import "strings"

// advance is the one place where anything moves on by itself; every transition ends with it. It repeats until nothing moves: an
// undo that is skipped at once may release another, an end may let the next event go on.
func (a *Aggregate) advance(env Env) {
	if a.skip == skipAdvance {
		return
	}
	for a.unwind(env) || a.complete() || a.promote(env) {
	}
	a.setAttention(env)
}

// unwind makes undo steps, releases those whose turn it is, and ends sagas of which everything is undone.
func (a *Aggregate) unwind(env Env) bool {
	moved := false
	for _, s := range a.Sagas {
		if s.State == Compensating {
			moved = a.makeUndos(s) || moved
		}
	}
	for _, s := range a.Sagas {
		if s.State != Compensating {
			continue
		}
		for _, t := range s.Steps {
			if t.Dir == Undo && t.State == Waiting && a.undoInTurn(s, t) {
				t.State = Ready
				t.Due = max(t.Due, env.Now)
				moved = true
			}
		}
		if s.unwound() {
			s.State = Compensated
			a.emitSaga(SagaCompensated, s)
			moved = true
		}
	}
	return moved
}

// NoUndoRequest is the reason of an undo step that has nothing to send.
const NoUndoRequest = "the undo request could not be rendered when the step succeeded"

// makeUndos makes the undo step of every success that has none.
func (a *Aggregate) makeUndos(s *Saga) bool {
	moved := false
	for _, t := range s.Steps {
		if t.Dir != Do || t.State != Succeeded || s.Step(t.Dest, Undo) != nil {
			continue
		}
		u := &Step{Dest: t.Dest, Dir: Undo, State: Waiting, SpecVersion: t.SpecVersion, Rules: t.Rules}
		switch t.Revert {
		case RevertNone:
			u.settle(Skipped, "revert: none")
		case RevertBroken:
			u.park(NoUndoRequest)
		}
		s.Steps = append(s.Steps, u)
		moved = true
	}
	return moved
}

// unwound tells whether there is proof, `revert: none` or a waiver for every step (G9).
func (s *Saga) unwound() bool {
	for _, t := range s.Steps {
		if !t.State.Settled() {
			return false
		}
		if t.Dir == Do && t.State == Succeeded && s.Step(t.Dest, Undo) == nil {
			return false
		}
	}
	return true
}

// complete ends running sagas of which every do step is done.
func (a *Aggregate) complete() bool {
	moved := false
	for _, s := range a.Sagas {
		if s.State == Running && a.done(s) {
			s.State = Completed
			a.emitSaga(SagaCompleted, s)
			moved = true
		}
	}
	return moved
}

func (a *Aggregate) done(s *Saga) bool {
	for _, t := range s.Steps {
		if t.State == Expected && a.skip == skipExpected {
			continue
		}
		if t.Dir == Do && !t.passed() {
			return false
		}
	}
	return true
}

// promote makes do steps READY whose turn has come.
func (a *Aggregate) promote(env Env) bool {
	moved := false
	for _, s := range a.Sagas {
		for _, t := range s.Steps {
			if t.Dir != Do || t.State != Waiting || s.State != Running && !(t.Late && s.State == Completed) {
				continue
			}
			if a.doInTurn(s, t) {
				t.State = Ready
				t.Due = max(t.Due, env.Now)
				moved = true
			}
		}
	}
	return moved
}

// setAttention sets or clears each saga's flag and publishes the change.
func (a *Aggregate) setAttention(env Env) {
	for _, s := range a.Sagas {
		want := s.wantsAttention(env)
		had := s.Attention
		s.Attention = want
		switch {
		case had == "" && want != "":
			a.emitSaga(SagaParked, s)
		case had != "" && want == "":
			a.emitSaga(SagaResumed, s)
		}
	}
}

// wantsAttention lists what an operator has to look at, in the plan's order.
func (s *Saga) wantsAttention(env Env) string {
	var why []string
	for _, t := range s.Steps {
		switch {
		case t.State == Parked:
			why = append(why, t.Dest+" "+t.Dir.String()+" parked: "+t.Reason)
		case t.State == Expected && t.ExpectBy != 0 && t.ExpectBy <= env.Now:
			why = append(why, t.Dest+" has not read this event")
		}
	}
	return strings.Join(why, "; ")
}
