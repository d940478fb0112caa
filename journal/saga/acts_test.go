package saga_test

import (
	"errors"
	"time"

	"github.com/ebbline/ebb/journal/saga"
)

// apply makes the move happen and checks what must hold of it.
func (w *world) apply(m move) {
	w.before()
	w.act(m)
	w.checkMove(m)
}

func (w *world) act(m move) {
	e, d := int(m.e), int(m.d)
	switch m.kind {
	case moveRead:
		w.read[e][d] = true
		w.ingest(e, d)
	case moveCancel:
		w.cancelled = true
		w.agg.Cancel(w.env(), w.b.cancel, "cancelled")
	case moveBegin:
		w.msg[e] = noMessage
		w.agg.Begin(w.env(), eventID(e))
	case moveBeginCopy:
		w.faults++
		w.msg[e] = messageCopy
		w.agg.Begin(w.env(), eventID(e))
	case moveLoseMessage:
		w.faults++
		w.msg[e] = messageLost
	case moveOverdue:
		w.overdue, w.now = true, overdue
		w.agg.Touch(w.env())
	case moveWait:
		w.waits++
		w.now = w.now.Add(2 * time.Minute)
		w.overdue = w.now >= deadline
		w.agg.Touch(w.env())
	case moveRetry:
		w.retries++
		err := w.agg.Retry(w.env(), eventID(e), destNames[d], directions[m.dir])
		if err != nil && !errors.Is(err, saga.ErrSuperseded) && !errors.Is(err, saga.ErrNoUndo) {
			w.must(err, saga.ErrUnresolved)
		}
	case moveHappened, moveNot, moveByHand, moveWaive:
		w.looks++
		w.operate(m)
	case moveReverse:
		w.reversals++
		w.reversed[e] = true
		w.must(w.agg.Compensate(w.env(), eventID(e), "an operator's wish"), nil)
	case moveClaim:
		w.claim(e, d, int(m.dir))
	case moveExpire:
		c := &w.calls[e][d][m.dir]
		if c[0].current() || c[1].current() {
			w.faults++
		}
		w.must(w.agg.Expire(w.env(), eventID(e), destNames[d], directions[m.dir]), nil)
	case moveLandYes, moveLandNo:
		w.net[e][d][m.dir]--
		w.land(e, d, int(m.dir), m.kind == moveLandYes)
	case moveDrop:
		w.net[e][d][m.dir]--
	default:
		w.endCall(m)
	}
}

// operate lets an operator settle a step.
func (w *world) operate(m move) {
	e, d, dir := int(m.e), int(m.d), directions[m.dir]
	id, dest := eventID(e), destNames[d]
	switch m.kind {
	case moveNot:
		w.must(w.agg.Disprove(w.env(), id, dest, dir), nil)
		return
	case moveWaive:
		w.waived[e][d][m.dir] = true
		w.must(w.agg.Waive(w.env(), id, dest, dir, "let it be"), nil)
		return
	}
	if m.kind == moveHappened {
		w.must(w.agg.Prove(w.env(), id, dest, dir, w.revert(e, d)), nil)
	} else if err := w.agg.Done(w.env(), id, dest, dir, w.revert(e, d), "by hand"); err != nil {
		w.must(err, saga.ErrEarly)
		return
	} else if dir == saga.Undo {
		w.undid[e][d] = 1
	} else {
		w.effect[e][d], w.did[e][d] = effected, 1
	}
	if t := w.step(e, d, int(m.dir)); t.State != saga.Succeeded {
		w.breaks("G5: %s %s was proven and is %s", part{e, d}, dir, t.State)
	}
}

func (w *world) ingest(e, d int) {
	ev := saga.Event{ID: eventID(e), Type: "Event", Role: w.b.roles[e], Version: version(e)}
	w.agg.Ingest(w.env(), ev, w.plan[e][d], destNames[d], deadline)
}

func (w *world) claim(e, d, dir int) {
	// What is checked is the situation before the claim.
	why, excuse := w.claimAllowed(e, d, dir)
	_, err := w.agg.Claim(w.env(), eventID(e), destNames[d], directions[dir], "w", w.now)
	if err != nil {
		w.must(err, saga.ErrNotClaimable)
		return
	}
	if why != "" && !w.b.outcomes {
		w.breaks("%s", why)
	}
	w.excuse[e][d] |= excuse
	c := &w.calls[e][d][dir]
	free := 0
	for i := range c {
		if c[i] != callNone {
			c[i] |= callStale
			free = 1 - i
		}
	}
	c[free] = callOut
	if w.step(e, d, dir).Asking {
		c[free] |= callAsks
	}
}

// endCall ends or continues the call in the move's slot.
func (w *world) endCall(m move) {
	e, d, dir := int(m.e), int(m.d), int(m.dir)
	slot := &w.calls[e][d][dir][m.i]
	was := *slot
	*slot = callNone
	switch m.kind {
	case moveYes, moveNo:
		*slot = callYes | was&(callStale|callAsks)
		if m.kind == moveNo {
			*slot = callNo | was&(callStale|callAsks)
		}
		if !was.asks() {
			w.land(e, d, dir, m.kind == moveYes)
		}
	case moveAccepted:
		w.faults++
		w.net[e][d][dir]++
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassPending, Reason: "status 202"})
	case moveUnsure:
		w.faults++
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassUnknown, Reason: "the lookup failed"})
	case moveNotFound:
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassNotFound, Reason: "not found"})
	case moveRecord:
		r := saga.Result{Class: saga.ClassRefused, Reason: "no", Healthy: m.healthy}
		if was.phase() == callYes {
			r = saga.Result{Class: saga.ClassSucceeded}
			if dir == do {
				r.Revert = w.revert(e, d)
			}
		}
		w.record(e, d, dir, was, r)
	case moveCrash, moveCrashUnsent:
		w.faults++
	case moveCrashSent:
		w.faults++
		w.net[e][d][dir]++
	case moveTimeout, moveLoseReply:
		w.faults++
		if m.kind == moveTimeout {
			w.net[e][d][dir]++
		}
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassUnknown, Reason: "no reply", Healthy: m.healthy})
	case moveReleaseSent, moveReleaseUnsent:
		w.faults++
		sent := m.kind == moveReleaseSent
		if sent {
			w.net[e][d][dir]++
		}
		w.must(w.agg.Release(w.env(), eventID(e), destNames[d], directions[dir], w.epoch(e, d, dir, was), sent), saga.ErrFenced)
	case movePark:
		w.parks++
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassParked, Reason: "does not render"})
	case moveSkip:
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassSkipped, Reason: "condition is false"})
	case moveThrottle:
		w.throttles++
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassRetry, Reason: "429", Healthy: m.healthy})
	case moveNotSent:
		w.outages++
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassNotSent, Reason: "refused connection"})
	case moveMisconfigured:
		w.outages++
		w.record(e, d, dir, was, saga.Result{Class: saga.ClassMisconfigured, Reason: "401", Healthy: m.healthy})
	default:
		panic("unknown move " + m.String())
	}
}

// epoch is the number under which the call was claimed: the step's, or an older one.
func (w *world) epoch(e, d, dir int, c call) int64 {
	n := w.step(e, d, dir).Epoch
	if !c.current() {
		n--
	}
	return n
}

func (w *world) record(e, d, dir int, c call, r saga.Result) {
	before := *w.step(e, d, dir)
	err := w.agg.Record(w.env(), eventID(e), destNames[d], directions[dir], w.epoch(e, d, dir, c), r)
	w.must(err, saga.ErrFenced)
	if w.b.outcomes {
		return
	}
	now := w.step(e, d, dir)
	mine := c.current() && before.State == saga.Calling
	switch {
	case r.Class == saga.ClassSucceeded && (err != nil || now.State != saga.Succeeded):
		w.breaks("G5: a success of %s %s did not settle it: %s", part{e, d}, directions[dir], now.State)
	case r.Class != saga.ClassSucceeded && (err == nil) != mine:
		w.breaks("G5: the result %s of %s %s came from another than the holder: %v", r.Class, part{e, d}, directions[dir], err)
	case err != nil && before != *now:
		w.breaks("G5: a fenced result changed %s %s", part{e, d}, directions[dir])
	}
}

// must checks that a transition returned no error but the one that may come.
func (w *world) must(err, but error) {
	if err != nil && !errors.Is(err, but) {
		w.breaks("a transition failed: %v", err)
	}
}

// land lets the API process a request.
func (w *world) land(e, d, dir int, yes bool) {
	switch {
	case dir == undo:
		w.landUndo(e, d)
	case !yes:
		if w.effect[e][d] == unseen {
			w.effect[e][d] = denied
		}
	case w.effect[e][d] == effected && w.remembers(d):
		// the answer is remembered
	default:
		w.landDo(e, d)
	}
}
