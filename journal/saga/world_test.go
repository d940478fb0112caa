package saga_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/ebbline/ebb/journal/saga"
)

// The most events and destinations that a world can have.
const (
	maxEvents = 4
	maxDests  = 4
)

// Directions as indices.
const (
	do   = 0
	undo = 1
)

var directions = [2]saga.Direction{saga.Do, saga.Undo}

// Moments of the model's clock: a deadline lies between them.
const (
	early    saga.Instant = 1_000_000
	deadline saga.Instant = 1_500_000
	overdue  saga.Instant = 2_000_000
)

// noLimit is more attempts than any history has.
const noLimit = 1 << 20

// bounds says what world is explored and how much may go wrong in one history.
type bounds struct {
	// plans lists, per event in the order of versions, the destinations of its plan; roles what the events mean.
	plans [][]int
	roles []saga.Role
	// rules of the destinations A, B, C, D.
	rules []saga.Rules
	// revert is what undoing takes, per event and destination; the zero value means a pinned undo.
	revert [maxEvents][maxDests]saga.Revert
	// skip marks steps that have nothing to send.
	skip [maxEvents][maxDests]bool
	// late marks destinations that join by backfill: no other group's plan has them.
	late [maxDests]bool
	// never marks destinations whose group reads nothing, ever.
	never [maxDests]bool
	// grown partitions: a group may read events out of order.
	grown bool
	// cancel is the version of a cancel that may come at any moment, zero for none; event e has version 10*(e+1).
	cancel int64
	// messages makes CompensationRequested a message that is delivered, doubled or lost; else FAILING sagas begin at any moment.
	messages bool
	// answers is what the API may say to a do call.
	answers answers
	// faults, parks and retries bound crashes, losses, delays, shutdowns and freezes; steps that park; operator retries.
	faults, parks, retries int
	// looks bounds what operators find out at the destination, do by hand, or waive; reversals the sagas that they unwind. What they say
	// is true.
	looks, reversals int
	// throttles bounds RETRY answers; outages NOT_SENT and MISCONFIGURED ends; waits steps of the clock.
	throttles, outages, waits int
	// impatient lets every destination's patience run out at any moment.
	impatient bool
	// forgetful lets every destination's memory of its keys end at any moment: then it does the work for every request.
	forgetful bool
	// outcomes checks only what can be seen from outside: what the API did, in which order, and how the sagas ended.
	outcomes bool
	// mutation is the rule that is left out.
	mutation saga.Mutation
}

// answers restricts the API.
type answers uint8

const (
	yesOrNo answers = iota
	onlyYes
)

func (b *bounds) planned(e, d int) bool {
	for _, x := range b.plans[e] {
		if x == d {
			return true
		}
	}
	return false
}

func destName(d int) string { return string(rune('A' + d)) }

var destNames = [maxDests]string{"A", "B", "C", "D"}

func destIndex(name string) int { return int(name[0] - 'A') }

func eventID(e int) saga.ID { return saga.ID{15: byte(e + 1)} }

func eventIndex(s *saga.Saga) int { return int(s.ID[15]) - 1 }

func version(e int) int64 { return int64(10 * (e + 1)) }

// call is what one worker holds for a step: a phase, and whether its epoch is the step's.
type call uint8

// The phases of a call. In callOut the request may or may not have left.
const (
	callNone call = iota
	callOut
	callYes
	callNo
	callPhase call = 3
	callStale call = 4
	callAsks  call = 8 // it is a lookup
)

func (c call) phase() call   { return c & callPhase }
func (c call) current() bool { return c != callNone && c&callStale == 0 }
func (c call) asks() bool    { return c&callAsks != 0 }

// outside is everything that is not the journal: workers, network, API, readers, and what may still go wrong.
type outside struct {
	calls  [maxEvents][maxDests][2][2]call
	net    [maxEvents][maxDests][2]uint8 // delayed requests
	read   [maxEvents][maxDests]bool     // the group has read the event
	msg    [maxEvents]uint8
	effect [maxEvents][maxDests]uint8 // at the API
	did    [maxEvents][maxDests]uint8 // times
	undid  [maxEvents][maxDests]uint8 // times
	// excuse remembers, per undo that has not landed, the parts that could not go on or were not unwound when it was claimed
	// (bit e*maxDests+d).
	excuse [maxEvents][maxDests]uint16
	// waived are steps that an operator settled as needless, reversed sagas that one unwound.
	waived   [maxEvents][maxDests][2]bool
	reversed [maxEvents]bool

	cancelled, overdue bool
	now                saga.Instant
	// used up of the bounds
	faults, parks, retries, throttles, outages, waits, looks, reversals uint8
}

// What the API remembers of a do key.
const (
	unseen = iota
	effected
	denied
)

// A message CompensationRequested.
const (
	noMessage = iota
	messageSent
	messageCopy // delivered, and will be again
	messageLost
)

type part struct{ e, d int }

func (p part) bit() uint16    { return 1 << (p.e*maxDests + p.d) }
func (p part) String() string { return fmt.Sprintf("e%d %s", p.e+1, destName(p.d)) }

// world is the journal's aggregate and everything around it.
type world struct {
	outside
	b   *bounds
	agg saga.Aggregate
	// bad is the first broken invariant.
	bad string

	rules [maxDests]saga.Rules
	plan  [maxEvents][maxDests][]saga.Planned // as the group of a destination sees it
	sagas [maxEvents]saga.Saga
	steps [maxEvents][maxDests][2]saga.Step
	list  [maxEvents][2 * maxDests]*saga.Step
	order [maxEvents]*saga.Saga
	// before the move
	was [maxEvents]struct {
		state     saga.State
		attention bool
		revision  int64
		maybe     uint8
	}
	// undone lists what the API undid, in order, if it is kept.
	undone     []part
	keepUndone bool
}

func newWorld(b *bounds) *world {
	w := &world{b: b}
	w.now = early
	for d := range b.rules {
		w.rules[d] = b.rules[d]
		if b.impatient {
			w.rules[d].Patience = time.Microsecond
		}
		if b.forgetful {
			w.rules[d].Window = time.Microsecond
		}
		if w.rules[d].MaxAttempts == 0 {
			w.rules[d].MaxAttempts = noLimit
		}
		if w.rules[d].MaxUndoAttempts == 0 {
			w.rules[d].MaxUndoAttempts = noLimit
		}
	}
	for e := range b.plans {
		for d := range b.rules {
			for _, x := range b.plans[e] {
				if !b.late[x] || x == d {
					w.plan[e][d] = append(w.plan[e][d], saga.Planned{Dest: destNames[x], SpecVersion: 1, Rules: &w.rules[x]})
				}
			}
		}
	}
	w.agg.Skip(b.mutation)
	return w
}

func (w *world) env() saga.Env { return saga.Env{Now: w.now} }

// saga returns the saga of event e, or nil.
func (w *world) saga(e int) *saga.Saga {
	for _, s := range w.agg.Sagas {
		if eventIndex(s) == e {
			return s
		}
	}
	return nil
}

// step returns the step, or nil.
func (w *world) step(e, d, dir int) *saga.Step {
	s := w.saga(e)
	if s == nil {
		return nil
	}
	return stepOf(s, d, dir)
}

func stepOf(s *saga.Saga, d, dir int) *saga.Step {
	for _, t := range s.Steps {
		if t.Dir == directions[dir] && t.Dest == destNames[d] {
			return t
		}
	}
	return nil
}

// breaks notes the first broken invariant.
func (w *world) breaks(format string, args ...any) {
	if w.bad == "" {
		w.bad = fmt.Sprintf(format, args...)
	}
}

// Flags of the bytes that encode a world.
const (
	flagMaybe      = 1 << 4
	flagSuperseded = 1 << 5
	flagOutage     = 1 << 6
	flagLate       = 1 << 7
)

// encode appends the world's canonical form. Epochs are reduced to whether a call's is the step's own, completion numbers to their
// ranks; texts, attempts and times do not decide anything within the bounds of exhaustive runs.
func (w *world) encode(out []byte) []byte {
	bits := w.faults | w.parks<<3 | w.retries<<5
	if w.cancelled {
		bits |= 1 << 7
	}
	out = append(out, bits)
	bits = w.throttles | w.outages<<3
	if w.overdue {
		bits |= 1 << 6
	}
	out = append(out, bits, w.looks|w.reversals<<4)
	for e := range w.b.plans {
		s := w.saga(e)
		var head, read byte
		if s != nil {
			head = byte(s.State) | w.msg[e]<<3
			if s.CancelVersion != 0 {
				head |= 1 << 5
			}
			if s.Attention != "" {
				head |= 1 << 6
			}
			if w.reversed[e] {
				head |= 1 << 7
			}
		}
		for d := range w.b.rules {
			if w.read[e][d] {
				read |= 1 << d
			}
		}
		out = append(out, head, read)
		for _, d := range w.b.plans[e] {
			out = w.encodePart(out, s, e, d)
		}
	}
	return out
}

func (w *world) encodePart(out []byte, s *saga.Saga, e, d int) []byte {
	var bits [2]byte
	misc := w.effect[e][d] | w.did[e][d]<<2 | w.undid[e][d]<<4
	rank := byte(0)
	if s != nil {
		for dir := range directions {
			t := stepOf(s, d, dir)
			if t == nil {
				continue
			}
			bits[dir] = encodeStep(t)
			if t.Epoch > 0 {
				misc |= 1 << (6 + dir)
			}
			if dir == do && t.Seq > 0 {
				rank = w.rank(t.Seq)
			}
		}
	}
	for dir := range directions {
		if w.waived[e][d][dir] {
			rank |= 1 << (6 + dir)
		}
	}
	out = append(out, bits[do], bits[undo], misc, rank)
	for dir := range directions {
		c := w.calls[e][d][dir]
		if c[0] < c[1] {
			c[0], c[1] = c[1], c[0]
		}
		out = append(out, byte(c[0])|byte(c[1])<<4)
	}
	return append(out, w.net[e][d][do]|w.net[e][d][undo]<<4, byte(w.excuse[e][d]), byte(w.excuse[e][d]>>8))
}

func encodeStep(t *saga.Step) byte {
	bits := byte(t.State)
	if t.Maybe {
		bits |= flagMaybe
	}
	if t.Superseded {
		bits |= flagSuperseded
	}
	if t.Outage {
		bits |= flagOutage
	}
	if t.Late {
		bits |= flagLate
	}
	return bits
}

func (w *world) rank(seq int64) byte {
	n := byte(1)
	for _, s := range w.agg.Sagas {
		for _, t := range s.Steps {
			if t.Seq > 0 && t.Seq < seq {
				n++
			}
		}
	}
	return n
}

// decode puts the world of the encoded form into w, reusing its memory.
func (w *world) decode(in []byte) {
	w.outside = outside{}
	w.bad = ""
	w.agg.Tombstone = 0
	w.agg.ForgetEmissions()
	w.now = early
	w.faults, w.parks, w.retries, w.cancelled = in[0]&7, in[0]>>3&3, in[0]>>5&3, in[0]>>7 != 0
	w.throttles, w.outages, w.overdue = in[1]&7, in[1]>>3&7, in[1]>>6&1 != 0
	if w.overdue {
		w.now = overdue
	}
	if w.cancelled {
		w.agg.Tombstone = w.b.cancel
	}
	w.looks, w.reversals = in[2]&15, in[2]>>4
	in = in[3:]
	sagas := w.order[:0]
	for e := range w.b.plans {
		head, read := in[0], in[1]
		in = in[2:]
		for d := range w.b.rules {
			w.read[e][d] = read>>d&1 != 0
		}
		s := &w.sagas[e]
		if head&7 != 0 {
			*s = saga.Saga{ID: eventID(e), Role: w.b.roles[e], Version: version(e), State: saga.State(head & 7), Steps: w.list[e][:0]}
			if head>>5&1 != 0 {
				s.CancelVersion = w.b.cancel
			}
			if head>>6&1 != 0 {
				s.Attention = "set"
			}
			w.msg[e] = head >> 3 & 3
			w.reversed[e] = head>>7 != 0
			sagas = append(sagas, s)
		}
		var undos [maxDests]*saga.Step
		n := 0
		for _, d := range w.b.plans[e] {
			if t := w.decodePart(in, s, e, d); t != nil {
				undos[n] = t
				n++
			}
			in = in[9:]
		}
		s.Steps = append(s.Steps, undos[:n]...)
	}
	w.agg.Sagas = sagas
}

// decodePart fills in one destination's part in a saga and returns its undo step, or nil.
func (w *world) decodePart(in []byte, s *saga.Saga, e, d int) *saga.Step {
	misc := in[2]
	w.effect[e][d], w.did[e][d], w.undid[e][d] = misc&3, misc>>2&3, misc>>4&3
	for dir := range directions {
		c := in[4+dir]
		w.calls[e][d][dir] = [2]call{call(c & 15), call(c >> 4)}
		w.net[e][d][dir] = in[6] >> (4 * dir) & 15
	}
	w.excuse[e][d] = uint16(in[7]) | uint16(in[8])<<8
	w.waived[e][d] = [2]bool{in[3]>>6&1 != 0, in[3]>>7 != 0}
	if in[0] == 0 {
		return nil
	}
	t := &w.steps[e][d][do]
	w.decodeStep(t, in[0], misc>>6&1 != 0, d, saga.Do)
	for _, c := range w.calls[e][d][do] {
		t.Asking = t.Asking || c.current() && c.asks()
	}
	t.Seq = int64(in[3] & 63)
	if t.State == saga.Succeeded {
		t.Revert = w.revert(e, d)
	}
	s.Steps = append(s.Steps, t)
	if in[1] == 0 {
		return nil
	}
	u := &w.steps[e][d][undo]
	w.decodeStep(u, in[1], misc>>7 != 0, d, saga.Undo)
	return u
}

func (w *world) decodeStep(t *saga.Step, bits byte, claimed bool, d int, dir saga.Direction) {
	*t = saga.Step{
		Dest: destNames[d], Dir: dir, State: saga.StepState(bits & 15), Maybe: bits&flagMaybe != 0,
		Superseded: bits&flagSuperseded != 0, Outage: bits&flagOutage != 0, Late: bits&flagLate != 0,
		SpecVersion: 1, Rules: &w.rules[d],
	}
	if claimed {
		t.Epoch, t.Attempt, t.FirstAttempt, t.FirstSent = 2, 1, early, early
	}
	switch t.State {
	case saga.Expected:
		t.ExpectBy = deadline
	case saga.Ready, saga.Resolving:
		t.Due = w.now
	case saga.Calling:
		t.Lease = w.now
	}
}

func (w *world) revert(e, d int) saga.Revert {
	if r := w.b.revert[e][d]; r != 0 {
		return r
	}
	return saga.RevertPinned
}

func (w *world) String() string {
	var b strings.Builder
	for _, s := range w.agg.Sagas {
		fmt.Fprintf(&b, "e%d %s", eventIndex(s)+1, s.State)
		if s.Attention != "" {
			b.WriteString(" with attention")
		}
		for _, t := range s.Steps {
			fmt.Fprintf(&b, "; %s %s %s", t.Dest, t.Dir, t.State)
			if t.Maybe {
				b.WriteString(" maybe")
			}
			if t.Seq > 0 {
				fmt.Fprintf(&b, " seq %d", t.Seq)
			}
		}
		b.WriteString("\n")
	}
	for e := range w.b.plans {
		for _, d := range w.b.plans[e] {
			if w.effect[e][d] != unseen || w.undid[e][d] > 0 {
				fmt.Fprintf(&b, "API: e%d %s %s, undone %d times\n", e+1, destName(d), [...]string{"unseen", "done", "refused"}[w.effect[e][d]], w.undid[e][d])
			}
		}
	}
	return b.String()
}

// after is shorthand for rules of an idempotent destination.
func after(dests ...string) saga.Rules {
	return saga.Rules{After: dests, Idempotency: saga.Idempotent}
}
