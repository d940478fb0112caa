package saga_test

import (
	"fmt"

	"github.com/ebbline/ebb/journal/saga"
)

// kind is what happens in a move.
type kind uint8

const (
	moveRead kind = iota + 1
	moveCancel
	moveBegin         // the compensator takes a FAILING saga: by its message, or by its sweeper
	moveBeginCopy     // by a message that is delivered once more later
	moveLoseMessage   // the message is lost or late: only the sweeper is left
	moveClaim         //
	movePark          // the request cannot be rendered
	moveSkip          // nothing to send
	moveYes           // the API processes the request of a call
	moveNo            //
	moveRecord        // the worker records the reply
	moveLoseReply     // the worker records that it got none
	moveCrash         // the worker dies with the reply
	moveTimeout       // the worker gives up, the request is still under way
	moveCrashSent     // the worker dies, the request is under way
	moveCrashUnsent   // the worker dies before it sends
	moveReleaseUnsent // shutdown
	moveReleaseSent   //
	moveThrottle      // the API does not process the request and says so
	moveNotSent       // no connection
	moveMisconfigured //
	moveExpire        // the lease runs out: of a worker that is gone, or frozen
	moveAccepted      // the API accepts the request, and will do it, or not
	moveUnsure        // a lookup does not tell
	moveNotFound      // a lookup finds nothing
	moveLandYes       // a delayed request is processed
	moveLandNo        //
	moveDrop          // a delayed request is lost
	moveRetry         // an operator retries a parked step
	moveHappened      // an operator sees at the destination that a step happened
	moveNot           // or that it did not
	moveByHand        // an operator does it
	moveWaive         // or lets it be
	moveReverse       // an operator unwinds a saga
	moveOverdue       // the deadline of EXPECTED steps passes
	moveWait          // time passes
)

var moveNames = [...]string{
	"", "reads", "cancel", "compensator takes", "compensator takes, message to come again:", "message lost:", "claim", "cannot render",
	"nothing to send", "API says yes", "API says no", "record", "reply lost", "crash with the reply", "timeout, request under way",
	"crash, request under way", "crash before send", "shutdown before send", "shutdown after send", "API says later", "no connection",
	"misconfigured", "lease out", "accepted", "lookup does not tell", "lookup finds nothing", "delayed request lands, yes", "delayed request lands, no", "delayed request lost",
	"operator retries", "operator sees that it happened", "operator sees that it did not", "operator does by hand", "operator waives",
	"operator unwinds", "deadline passes", "time passes",
}

// move is one thing that happens, to a step's slot where it concerns one. A flag tells that the destination is healthy.
type move struct {
	kind         kind
	e, d, dir, i uint8
	healthy      bool
}

func (m move) String() string {
	what := moveNames[m.kind]
	if m.healthy {
		what += " (others pass)"
	}
	switch m.kind {
	case moveCancel, moveOverdue, moveWait:
		return what
	case moveRead:
		return fmt.Sprintf("%s reads e%d", destName(int(m.d)), m.e+1)
	case moveBegin, moveBeginCopy, moveLoseMessage, moveReverse:
		return fmt.Sprintf("%s e%d", what, m.e+1)
	}
	return fmt.Sprintf("%s: e%d %s %s", what, m.e+1, destName(int(m.d)), directions[m.dir])
}

func (m move) pack() uint32 {
	n := uint32(m.kind) | uint32(m.e)<<8 | uint32(m.d)<<12 | uint32(m.dir)<<16 | uint32(m.i)<<17
	if m.healthy {
		n |= 1 << 18
	}
	return n
}

func unpack(n uint32) move {
	return move{kind: kind(n), e: uint8(n >> 8 & 15), d: uint8(n >> 12 & 15), dir: uint8(n >> 16 & 1), i: uint8(n >> 17 & 1), healthy: n>>18 != 0}
}

// optional tells that the world may rest without the move: people need not act.
func (m move) optional() bool {
	return m.kind == moveCancel || m.kind >= moveRetry && m.kind <= moveReverse
}

// lookedAt tells that an operator answers for the step.
func (m move) lookedAt(e int, t *saga.Step) bool {
	return m.kind >= moveHappened && m.kind <= moveWaive && int(m.e) == e && int(m.d) == destIndex(t.Dest) && directions[m.dir] == t.Dir
}

// outage tells that the move ends a call by a fault that is the destination's or the set-up's (G10).
func (m move) outage() bool { return m.kind == moveNotSent || m.kind == moveMisconfigured }

// moves lists what can happen now.
func (w *world) moves(out []move) []move {
	b := w.b
	waitingFor := false
	for e := range b.plans {
		for d := range b.rules {
			if !b.planned(e, d) || w.read[e][d] || b.never[d] {
				continue
			}
			if !b.grown && !w.inOrder(e, d) {
				continue
			}
			out = append(out, move{kind: moveRead, e: uint8(e), d: uint8(d)})
		}
		s := w.saga(e)
		if s == nil {
			continue
		}
		out = w.compensatorMoves(out, s, e)
		if int(w.reversals) < b.reversals && (s.State == saga.Running || s.State == saga.Completed) {
			out = append(out, move{kind: moveReverse, e: uint8(e)})
		}
		for _, d := range b.plans[e] {
			for dir := range directions {
				if t := stepOf(s, d, dir); t != nil {
					waitingFor = waitingFor || t.State == saga.Expected && b.never[d]
					out = w.stepMoves(out, t, move{e: uint8(e), d: uint8(d), dir: uint8(dir)})
				}
			}
		}
	}
	if b.cancel != 0 && !w.cancelled {
		out = append(out, move{kind: moveCancel})
	}
	if (waitingFor || b.impatient || b.forgetful && !w.underWay()) && !w.overdue {
		out = append(out, move{kind: moveOverdue})
	}
	if int(w.waits) < b.waits {
		out = append(out, move{kind: moveWait})
	}
	return out
}

// underWay tells whether a request is on its way to the API, or may be sent by a worker.
func (w *world) underWay() bool {
	for e := range w.b.plans {
		for d := range w.b.rules {
			for dir := range directions {
				c := w.calls[e][d][dir]
				if w.net[e][d][dir] > 0 || c[0].phase() == callOut || c[1].phase() == callOut {
					return true
				}
			}
		}
	}
	return false
}

// remembers tells whether the destination answers a repeated request as it did the first time.
func (w *world) remembers(d int) bool {
	return w.rules[d].Idempotency != saga.NotIdempotent && !(w.b.forgetful && w.overdue)
}

// inOrder tells whether the group has read every earlier event of its plan: they are in one partition.
func (w *world) inOrder(e, d int) bool {
	for x := range e {
		if w.b.planned(x, d) && !w.read[x][d] {
			return false
		}
	}
	return true
}

func (w *world) compensatorMoves(out []move, s *saga.Saga, e int) []move {
	m := func(k kind) move { return move{kind: k, e: uint8(e)} }
	if !w.b.messages {
		if s.State == saga.Failing {
			out = append(out, m(moveBegin))
		}
		return out
	}
	switch w.msg[e] {
	case messageSent:
		out = append(out, m(moveBegin))
		if int(w.faults) < w.b.faults {
			out = append(out, m(moveBeginCopy), m(moveLoseMessage))
		}
	case messageCopy:
		out = append(out, m(moveBegin))
	case messageLost:
		if s.State == saga.Failing {
			out = append(out, m(moveBegin))
		}
	}
	return out
}

func (w *world) stepMoves(out []move, t *saga.Step, m move) []move {
	fault := int(w.faults) < w.b.faults
	add := func(k kind, healthy bool) {
		m.kind, m.healthy = k, healthy
		out = append(out, m)
	}
	c := &w.calls[m.e][m.d][m.dir]
	if (t.State == saga.Ready || t.State == saga.Resolving) && t.Due <= w.now && (c[0] == callNone || c[1] == callNone) {
		add(moveClaim, false)
	}
	if t.State == saga.Calling {
		held := c[0].current() || c[1].current()
		if !held || fault {
			add(moveExpire, false)
		}
	}
	if t.State == saga.Parked && int(w.retries) < w.b.retries {
		add(moveRetry, false)
	}
	if int(w.looks) < w.b.looks && t.State != saga.Calling {
		out = w.operatorMoves(out, t, m)
	}
	for i := range c {
		m.i = uint8(i)
		if i == 1 && c[0] == c[1] {
			break // the same again
		}
		switch c[i].phase() {
		case callOut:
			if c[i].asks() {
				out = w.lookupMoves(out, m)
				continue
			}
			if m.dir == do && w.b.skip[m.e][m.d] {
				add(moveSkip, false)
				if fault {
					add(moveCrashUnsent, false)
					add(moveReleaseUnsent, false)
				}
				continue
			}
			yes, no := w.answers(m)
			if yes {
				add(moveYes, false)
			}
			if no {
				add(moveNo, false)
			}
			out = w.unluckyMoves(out, m, c[i].current())
		case callYes, callNo:
			add(moveRecord, false)
			if fault {
				add(moveCrash, false)
			}
			if fault && !c[i].asks() {
				add(moveLoseReply, false)
			}
		}
	}
	if w.net[m.e][m.d][m.dir] > 0 {
		m.i = 0
		yes, no := w.answers(m)
		if yes {
			add(moveLandYes, false)
		}
		if no {
			add(moveLandNo, false)
		}
		add(moveDrop, false)
	}
	return out
}

// lookupMoves are the ends of a lookup: what the API knows of the step, or no answer. That it finds nothing, or a refusal that is not
// for good, counts once nothing is under way any more, which is what settle is for.
func (w *world) lookupMoves(out []move, m move) []move {
	add := func(k kind) {
		m.kind = k
		out = append(out, m)
	}
	switch w.effect[m.e][m.d] {
	case effected:
		add(moveYes)
	case denied:
		if !w.mayLand(m) || w.rules[m.d].Idempotency == saga.Idempotent {
			add(moveNo)
		}
	default:
		if !w.mayLand(m) || w.b.mutation == saga.SkipSettle {
			add(moveNotFound)
		}
	}
	if int(w.faults) < w.b.faults {
		add(moveUnsure)
		add(moveCrashUnsent)
		add(moveReleaseUnsent)
	}
	return out
}

// mayLand tells whether a request of the step is under way, or may still be sent by a worker that was given up.
func (w *world) mayLand(m move) bool {
	if w.net[m.e][m.d][m.dir] > 0 {
		return true
	}
	for _, c := range w.calls[m.e][m.d][m.dir] {
		if c.phase() == callOut && !c.asks() {
			return true
		}
	}
	return false
}

// operatorMoves are what an operator may say of a step that does not go on by itself. They look when nothing is under way any more.
func (w *world) operatorMoves(out []move, t *saga.Step, m move) []move {
	add := func(k kind) {
		m.kind = k
		out = append(out, m)
	}
	if t.State == saga.Expected {
		add(moveWaive)
		return out
	}
	for _, c := range w.calls[m.e][m.d][m.dir] {
		if c != callNone {
			return out
		}
	}
	if w.net[m.e][m.d][m.dir] > 0 || t.State != saga.Parked && t.State != saga.Resolving && t.State != saga.Ready {
		return out
	}
	add(moveWaive)
	happened := w.effect[m.e][m.d] == effected
	if m.dir == undo {
		happened = w.undid[m.e][m.d] > 0
	}
	if happened {
		add(moveHappened)
		return out
	}
	add(moveByHand)
	if t.Maybe {
		add(moveNot)
	}
	return out
}

// unluckyMoves are the other ends of a call that is out.
func (w *world) unluckyMoves(out []move, m move, current bool) []move {
	add := func(k kind) {
		m.kind = k
		out = append(out, m)
	}
	both := func(k kind) {
		m.healthy = false
		add(k)
		m.healthy = true
		add(k)
		m.healthy = false
	}
	if int(w.faults) < w.b.faults {
		if w.rules[m.d].MaxAttempts == noLimit {
			add(moveTimeout)
		} else {
			both(moveTimeout)
		}
		add(moveCrashSent)
		add(moveCrashUnsent)
		add(moveReleaseUnsent)
		add(moveReleaseSent)
		if m.dir == do && w.rules[m.d].Lookup {
			add(moveAccepted)
		}
	}
	if int(w.parks) < w.b.parks && current {
		add(movePark)
	}
	if int(w.throttles) < w.b.throttles {
		both(moveThrottle)
	}
	if int(w.outages) < w.b.outages {
		add(moveNotSent)
		both(moveMisconfigured)
	}
	return out
}

// answers tells what the API can say to a request of the step.
func (w *world) answers(m move) (yes, no bool) {
	if m.dir == undo {
		return true, false
	}
	no = w.b.answers == yesOrNo
	switch w.effect[m.e][m.d] {
	case effected:
		if w.remembers(int(m.d)) {
			return true, false
		}
	case denied:
		if w.remembers(int(m.d)) && w.rules[m.d].Idempotency == saga.Idempotent {
			return false, true
		}
	}
	return true, no
}
