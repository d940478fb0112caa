package saga_test

import (
	"github.com/ebbline/ebb/journal/saga"
)

// dependsOn tells whether p was, or may have been, done because q was done before: it comes after q in its plan, or is a later
// event at q's destination or one after it. What is known to have been done before q was not done because of it.
func (w *world) dependsOn(p, q part) bool {
	pt, qt := w.step(p.e, p.d, do), w.step(q.e, q.d, do)
	if p == q || p.e < q.e || pt == nil || qt == nil || pt.Seq > 0 && qt.Seq > 0 && pt.Seq < qt.Seq {
		return false
	}
	if p.e > q.e && p.d == q.d {
		return true
	}
	return w.comesAfter(p.e, p.d, q.d)
}

// comesAfter follows `after` through the destinations of the event's saga.
func (w *world) comesAfter(e, d, on int) bool {
	for _, name := range w.rules[d].After {
		x := destIndex(name)
		if x == on || w.step(e, x, do) != nil && w.comesAfter(e, x, on) {
			return true
		}
	}
	return false
}

// eachPart calls f for every part of every saga that is being unwound.
func (w *world) eachPart(f func(p part, t, u *saga.Step)) {
	for _, s := range w.agg.Sagas {
		if !s.State.Unwinding() {
			continue
		}
		e := eventIndex(s)
		for _, d := range w.b.plans[e] {
			if t := stepOf(s, d, do); t != nil {
				f(part{e, d}, t, stepOf(s, d, undo))
			}
		}
	}
}

func open(t *saga.Step) bool { return t.State == saga.Resolving || t.State == saga.Parked }

func pending(t, u *saga.Step) bool {
	return t.State == saga.Succeeded && (u == nil || !u.State.Settled())
}

// held tells whether the part cannot go on now: by itself, or because one that depended on it cannot (G7).
func (w *world) held(p part, t, u *saga.Step) bool {
	if open(t) || u != nil && !u.State.Settled() && (u.State == saga.Parked || u.Outage) {
		return true
	}
	found := false
	w.eachPart(func(q part, qt, qu *saga.Step) {
		if !found && (open(qt) || pending(qt, qu)) && w.dependsOn(q, p) {
			found = w.held(q, qt, qu)
		}
	})
	return found
}

// claimAllowed tells what forbids the claim, if anything does, and for an undo which parts of the scope it may pass by.
func (w *world) claimAllowed(e, d, dir int) (why string, excuse uint16) {
	me := part{e, d}
	s, t := w.saga(e), w.step(e, d, dir)
	if dir == do {
		if t.State == saga.Ready {
			return w.doAllowed(s, me), 0
		}
		return "", 0
	}
	own := w.step(e, d, do)
	w.eachPart(func(p part, pt, pu *saga.Step) {
		if p == me {
			return
		}
		if pt.State == saga.Calling {
			why = "an undo is claimed while " + p.String() + " do is CALLING"
		}
		depends := w.dependsOn(p, me)
		switch {
		case !open(pt) && !pending(pt, pu):
		case depends:
			why = "G7: " + me.String() + " undo is claimed before " + p.String() + ", which depended on it"
		case open(pt):
			excuse |= p.bit()
		case pt.Seq < own.Seq:
		case w.held(p, pt, pu):
			excuse |= p.bit()
		default:
			why = "G7: " + me.String() + " undo is claimed before " + p.String() + ", which was done later and can go on"
		}
	})
	// What is not unwound now may be unwound before the request lands.
	for x := range w.b.plans {
		if other := w.saga(x); other == nil || !other.State.Unwinding() {
			for _, d := range w.b.plans[x] {
				excuse |= part{x, d}.bit()
			}
		}
	}
	return why, excuse
}

// doAllowed is the order of the aggregate's events at one destination (G8).
func (w *world) doAllowed(s *saga.Saga, me part) string {
	for _, x := range w.agg.Sagas {
		if x.Version >= s.Version {
			break
		}
		e := eventIndex(x)
		if x.State.Unwinding() {
			return "G8: " + me.String() + " is claimed while an earlier event is unwound"
		}
		u := stepOf(x, me.d, undo)
		if w.holds(stepOf(x, me.d, do)) || u != nil && !u.State.Settled() && w.rules[me.d].Ordering != saga.OrderNone {
			return "G8: " + me.String() + " is claimed while " + part{e, me.d}.String() + " is open"
		}
	}
	for x := me.e + 1; x < len(w.b.plans) && w.rules[me.d].Ordering != saga.OrderNone; x++ {
		if t := w.step(x, me.d, do); t != nil && t.Epoch > 0 {
			return "G8: " + me.String() + " is claimed after " + part{x, me.d}.String()
		}
	}
	return ""
}

// holds tells whether the do step, if there is one, holds later events back at its destination.
func (w *world) holds(t *saga.Step) bool {
	if t == nil || t.State.Settled() || t.Superseded {
		return false
	}
	switch t.Rules.Ordering {
	case saga.OrderNone:
		return false
	case saga.OrderPass:
		return t.State != saga.Parked
	default:
		return true
	}
}

// landDo is the API doing the work.
func (w *world) landDo(e, d int) {
	w.effect[e][d] = effected
	w.did[e][d] = min(w.did[e][d]+1, 3)
	if w.did[e][d] > 1 {
		w.breaks("%s was done twice", part{e, d})
	}
	if w.undid[e][d] > 0 {
		w.breaks("%s was done after its undo", part{e, d})
	}
	// Where later events pass a parked step, what it had sent may still land, or be repeated to be undone.
	for x := e + 1; x < len(w.b.plans) && w.rules[d].Ordering == saga.OrderHold; x++ {
		if w.did[x][d] > 0 {
			w.breaks("G8: %s was done after %s", part{e, d}, part{x, d})
		}
	}
	for x := range maxDests {
		if me, p := (part{e, d}), (part{e, x}); w.undid[e][x] > 0 && w.dependsOn(me, p) {
			w.breaks("G7: %s was done after %s, which it depended on, was undone", me, p)
		}
	}
}

// landUndo is the API undoing the work.
func (w *world) landUndo(e, d int) {
	me := part{e, d}
	if w.undid[e][d] > 0 {
		if !w.remembers(d) {
			w.breaks("%s was undone twice", me)
		}
		return
	}
	w.undid[e][d] = 1
	if w.keepUndone {
		w.undone = append(w.undone, me)
	}
	if w.effect[e][d] != effected {
		w.breaks("%s was undone before it was done", me)
	}
	own := w.step(e, d, do)
	w.eachPart(func(p part, t, u *saga.Step) {
		stands := w.effect[p.e][p.d] == effected && w.undid[p.e][p.d] == 0 && w.revert(p.e, p.d) != saga.RevertNone && !w.letBe(p.e, p.d)
		switch {
		case p == me || !stands || w.excuse[e][d]&p.bit() != 0:
		case w.dependsOn(p, me):
			w.breaks("G7: %s was undone while %s stood, which depended on it", me, p)
		case t.Seq > own.Seq && !w.held(p, t, u):
			w.breaks("G7: %s was undone before %s, which was done later and could go on", me, p)
		}
	})
	w.excuse[e][d] = 0
}

// letBe tells whether an operator has decided that the part's effect, if there is one, stays.
func (w *world) letBe(e, d int) bool {
	for dir := range directions {
		if t := w.step(e, d, dir); t != nil && t.State == saga.Skipped && w.waived[e][d][dir] {
			return true
		}
	}
	return false
}

// broken checks what must hold in every state.
func (w *world) broken() string {
	for _, s := range w.agg.Sagas {
		e := eventIndex(s)
		w.checkEnd(s, e)
		if w.b.outcomes {
			continue
		}
		if s.State.Open() && !w.alive(s, 0) {
			w.breaks("G9: e%d is stuck", e+1)
		}
		w.checkCertain(s, e)
		w.checkReleased(s, e)
		look := false
		for _, t := range s.Steps {
			look = look || t.State == saga.Parked || t.State == saga.Expected && w.overdue
		}
		if look != (s.Attention != "") {
			w.breaks("G9: e%d has attention %q", e+1, s.Attention)
		}
	}
	if !w.b.outcomes {
		w.checkScope(func(s *saga.Saga) bool { return s.State == saga.Running || s.State == saga.Completed })
	}
	return w.bad
}

// checkReleased: an undo that may be claimed is READY, so that what is stuck holds back no more than what it depended on (G7).
func (w *world) checkReleased(s *saga.Saga, e int) {
	if s.State != saga.Compensating {
		return
	}
	for _, u := range s.Steps {
		if u.Dir != saga.Undo || u.State != saga.Waiting {
			continue
		}
		if why, _ := w.claimAllowed(e, destIndex(u.Dest), undo); why == "" {
			w.breaks("G7: %s undo is WAITING for nothing", part{e, destIndex(u.Dest)})
		}
	}
}

// checkCertain: what is not known to have happened, nor marked as maybe, did not happen and cannot any more (G3).
func (w *world) checkCertain(s *saga.Saga, e int) {
	for _, t := range s.Steps {
		d, dir := destIndex(t.Dest), int(t.Dir-saga.Do)
		if t.Maybe || t.State == saga.Calling || t.State == saga.Succeeded || t.State == saga.Skipped && w.waived[e][d][dir] {
			continue
		}
		happened := w.effect[e][d] == effected
		if dir == undo {
			happened = w.undid[e][d] > 0
		}
		answered := dir == do && w.effect[e][d] == denied && t.Rules.Idempotency == saga.Idempotent
		if happened || w.net[e][d][dir] > 0 && !answered {
			w.breaks("G3: %s %s is %s without maybe, and may have happened", part{e, d}, t.Dir, t.State)
		}
	}
}

// checkScope: no cancelled saga stands, and none whose create was unwound, where standing is what the caller says. None is unwound
// without one of these reasons, or a refusal of its own.
func (w *world) checkScope(stands func(*saga.Saga) bool) {
	unwoundCreate := false
	for _, s := range w.agg.Sagas {
		switch {
		case w.cancels(s) && stands(s):
			w.breaks("e%d is cancelled and %s", eventIndex(s)+1, s.State)
		case unwoundCreate && stands(s):
			w.breaks("e%d is %s, its create was unwound", eventIndex(s)+1, s.State)
		case !unwoundCreate && (s.State.Unwinding() || s.State == saga.Compensated) && !w.cancels(s) && !refused(s) && !w.reversed[eventIndex(s)]:
			w.breaks("e%d is %s for no reason", eventIndex(s)+1, s.State)
		}
		if s.Role == saga.Create && s.CancelVersion == 0 && (s.State.Unwinding() || s.State == saga.Compensated) {
			unwoundCreate = true
		}
	}
}

func (w *world) cancels(s *saga.Saga) bool { return w.cancelled && s.Version < w.b.cancel }

// refused tells whether a step was refused in a way that unwinds the saga.
func refused(s *saga.Saga) bool {
	for _, t := range s.Steps {
		if t.Dir == saga.Do && t.State == saga.Refused && t.Rules.OnRefused == saga.RefusalCompensates && !t.Late {
			return true
		}
	}
	return false
}

// checkEnd: an ended saga has the effects of its end.
func (w *world) checkEnd(s *saga.Saga, e int) {
	for _, d := range w.b.plans[e] {
		t := stepOf(s, d, do)
		if t == nil {
			continue
		}
		standing := w.effect[e][d] == effected && w.undid[e][d] == 0
		switch {
		case s.State == saga.Completed && !t.Late && !standing && t.State != saga.Skipped && t.Rules.OnRefused != saga.RefusalIgnored:
			w.breaks("G9: e%d is COMPLETED without its effect at %s", e+1, destName(d))
		case s.State == saga.Compensated && standing && w.revert(e, d) != saga.RevertNone && !w.letBe(e, d):
			w.breaks("G9: e%d is COMPENSATED, its effect at %s remains", e+1, destName(d))
		}
	}
}

// alive tells whether an open saga has something due, calling or expected, or attention, or waits for another that has: a running
// one for an earlier one, one that is unwound for any that is unwound with it (G9).
func (w *world) alive(s *saga.Saga, seen uint8) bool {
	if s.Attention != "" || s.State == saga.Failing {
		return true
	}
	for _, t := range s.Steps {
		switch {
		case t.State == saga.Calling, t.State == saga.Ready, t.State == saga.Resolving, t.State == saga.Expected:
			return true
		}
	}
	seen |= 1 << eventIndex(s)
	for _, x := range w.agg.Sagas {
		if seen>>eventIndex(x)&1 != 0 {
			continue
		}
		if s.State == saga.Running && x.Version < s.Version && w.blocks(x, s) || s.State == saga.Compensating && x.State.Unwinding() {
			if w.alive(x, seen) {
				return true
			}
		}
	}
	return false
}

// blocks tells whether the earlier saga x holds a step of s back.
func (w *world) blocks(x, s *saga.Saga) bool {
	if x.State.Unwinding() {
		return true
	}
	for _, t := range s.Steps {
		d := destIndex(t.Dest)
		if t.State == saga.Waiting && w.holds(stepOf(x, d, do)) {
			return true
		}
	}
	return false
}

// stuck checks what must hold once nothing can happen any more but what people may do.
func (w *world) stuck() string {
	w.checkScope(func(s *saga.Saga) bool { return s.State == saga.Completed })
	for _, s := range w.agg.Sagas {
		if s.State.Open() && !w.excused(s, 0) {
			w.breaks("G9: nothing is left to happen, and e%d is %s without attention", eventIndex(s)+1, s.State)
		}
		for _, t := range s.Steps {
			if s.State == saga.Completed && !t.State.Settled() && s.Attention == "" && !w.excused(s, 0) {
				w.breaks("G9: nothing is left to happen, and %s %s is %s without attention", part{eventIndex(s), destIndex(t.Dest)}, t.Dir, t.State)
			}
		}
		if s.State == saga.Compensating {
			w.checkHeld(s)
		}
	}
	return w.bad
}

// excused tells whether the saga has attention, or waits for one that has.
func (w *world) excused(s *saga.Saga, seen uint8) bool {
	if s.Attention != "" {
		return true
	}
	seen |= 1 << eventIndex(s)
	for _, x := range w.agg.Sagas {
		if seen>>eventIndex(x)&1 == 0 && ((s.State == saga.Running || s.State == saga.Completed) && x.Version < s.Version && w.blocks(x, s) ||
			s.State == saga.Compensating && x.State.Unwinding()) && w.excused(x, seen) {
			return true
		}
	}
	return false
}

// checkHeld: an undo that waits for good waits for something that depended on it, not for something that is merely stuck (G7).
func (w *world) checkHeld(s *saga.Saga) {
	e := eventIndex(s)
	for _, u := range s.Steps {
		d := destIndex(u.Dest)
		if u.Dir == saga.Undo && u.State == saga.Waiting && !w.held(part{e, d}, stepOf(s, d, do), u) {
			w.breaks("G7: %s undo is held back by what did not depend on it", part{e, d})
		}
	}
}
