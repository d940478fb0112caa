package saga_test

import (
	"github.com/ebbline/ebb/journal/saga"
)

// before notes what the journal says before a move.
func (w *world) before() {
	for e := range w.b.plans {
		s := w.saga(e)
		was := &w.was[e]
		was.state, was.attention, was.revision, was.maybe = 0, false, 0, 0
		if s == nil {
			continue
		}
		was.state, was.attention, was.revision = s.State, s.Attention != "", s.Revision
		for _, t := range s.Steps {
			if t.Maybe {
				was.maybe |= maybeBit(t)
			}
		}
	}
}

func maybeBit(t *saga.Step) uint8 { return 1 << (destIndex(t.Dest)*2 + int(t.Dir-saga.Do)) }

// checkMove compares what a move changed with what it may change, and with what it published.
func (w *world) checkMove(m move) {
	sent := w.published()
	if w.b.outcomes {
		return
	}
	for e := range w.b.plans {
		s := w.saga(e)
		if s == nil {
			continue
		}
		w.checkPublished(s, e, &sent[e])
		was := &w.was[e]
		for _, t := range s.Steps {
			if (t.State == saga.Ready || t.State == saga.Resolving) && t.Due == 0 {
				w.breaks("G9: %s %s is %s and never due", part{e, destIndex(t.Dest)}, t.Dir, t.State)
			}
			if was.maybe&maybeBit(t) != 0 && !t.Maybe && m.kind != moveRecord && m.kind != moveSkip && m.kind != moveNotFound && !m.lookedAt(e, t) {
				w.breaks("G3: %s %s may have happened, and %q made that forgotten", part{e, destIndex(t.Dest)}, t.Dir, m)
			}
		}
		if m.outage() && w.rules[m.d].OnExhausted != saga.ExhaustedCompensates && was.state != saga.Failing && s.State == saga.Failing {
			w.breaks("G10: %q started an unwinding", m)
		}
	}
}

type publishedKinds [saga.StepUndone + 1]int

// published counts what the move published, and takes the messages for the compensator.
func (w *world) published() [maxEvents]publishedKinds {
	var sent [maxEvents]publishedKinds
	for i := range w.agg.Emissions() {
		m := &w.agg.Emissions()[i]
		e := eventIndex(&m.Saga)
		sent[e][m.Kind]++
		if m.Kind == saga.CompensationRequested && w.b.messages {
			w.msg[e] = messageSent
		}
	}
	w.agg.ForgetEmissions()
	return sent
}

// checkPublished: every change that readers follow is published, once (G1).
func (w *world) checkPublished(s *saga.Saga, e int, sent *publishedKinds) {
	was := &w.was[e]
	turned := func(to saga.State) int {
		if was.state != to && s.State == to {
			return 1
		}
		return 0
	}
	if sent[saga.SagaCompleted] != turned(saga.Completed) || sent[saga.SagaCompensated] < turned(saga.Compensated) ||
		sent[saga.CompensationRequested] != turned(saga.Failing) {
		w.breaks("G1: e%d went from %s to %s and published %v", e+1, was.state, s.State, *sent)
	}
	attention := s.Attention != ""
	if attention && !was.attention && sent[saga.SagaParked] == 0 {
		w.breaks("G1: e%d got attention without an event", e+1)
	}
	if !attention && was.attention && sent[saga.SagaResumed]+sent[saga.SagaCompleted]+sent[saga.SagaCompensated] == 0 {
		w.breaks("G1: e%d lost attention without an event", e+1)
	}
	sagaEvents := sent[saga.SagaCompleted] + sent[saga.SagaCompensated] + sent[saga.SagaParked] + sent[saga.SagaResumed]
	if s.Revision != was.revision+int64(sagaEvents) {
		w.breaks("e%d went from revision %d to %d by %d events", e+1, was.revision, s.Revision, sagaEvents)
	}
}

// repeats makes everything happen again that may be repeated, which must change nothing (G11).
func (w *world) repeats() {
	for e := range w.b.plans {
		for d := range w.b.rules {
			if w.read[e][d] {
				w.ingest(e, d)
			}
		}
		if s := w.saga(e); s != nil && s.State != saga.Failing {
			w.agg.Begin(w.env(), eventID(e))
		}
	}
	if w.cancelled {
		w.agg.Cancel(w.env(), w.b.cancel, "cancelled")
	}
	w.agg.Touch(w.env())
	if n := len(w.agg.Emissions()); n > 0 {
		w.breaks("G11: a repeat published %d events", n)
	}
}
