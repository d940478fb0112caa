package saga_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbline/ebb/journal/saga"
)

// historiesPerWorld makes each drawn world worth its drawing.
const historiesPerWorld = 10

// drawWorld draws a plan: destinations in a random order graph, events with random parts in it, and rules of every kind.
func drawWorld(t *rapid.T) bounds {
	coin := func(label string) bool { return rapid.Bool().Draw(t, label) }
	b := bounds{}
	dests := rapid.IntRange(3, maxDests).Draw(t, "dests")
	for d := range dests {
		r := saga.Rules{
			Idempotency:     saga.Idempotency(rapid.SampledFrom([]int{2, 2, 2, 1, 0}).Draw(t, "idempotency")),
			OnRefused:       saga.OnRefused(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "onRefused")),
			OnExhausted:     saga.OnExhausted(rapid.IntRange(0, 1).Draw(t, "onExhausted")),
			MaxAttempts:     rapid.IntRange(1, 3).Draw(t, "attempts"),
			MaxUndoAttempts: rapid.IntRange(1, 3).Draw(t, "undoAttempts"),
			Lookup:          rapid.IntRange(0, 2).Draw(t, "lookup") == 0,
			BackoffBase:     time.Second,
			BackoffMax:      30 * time.Second,
		}
		r.Ordering = saga.Ordering(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "ordering"))
		if coin("window") {
			r.Window = 5 * time.Minute
		}
		if coin("patience") {
			r.Patience = 3 * time.Minute
		}
		for x := range d {
			if coin("after") {
				r.After = append(r.After, destNames[x])
			}
		}
		b.rules = append(b.rules, r)
	}
	for e := range rapid.IntRange(1, maxEvents).Draw(t, "events") {
		var plan []int
		for d := range dests {
			if coin("planned") {
				plan = append(plan, d)
			}
			b.revert[e][d] = saga.Revert(rapid.SampledFrom([]int{2, 2, 2, 2, 1, 3}).Draw(t, "revert"))
			b.skip[e][d] = rapid.IntRange(0, 7).Draw(t, "skip") == 0
		}
		if len(plan) == 0 {
			plan = []int{e % dests}
		}
		b.plans = append(b.plans, plan)
		b.roles = append(b.roles, saga.Change)
	}
	b.roles[0] = saga.Create
	if rapid.IntRange(0, 3).Draw(t, "late") == 0 {
		b.late[rapid.IntRange(0, dests-1).Draw(t, "lateDest")] = true
	}
	if rapid.IntRange(0, 5).Draw(t, "never") == 0 {
		b.never[rapid.IntRange(0, dests-1).Draw(t, "neverDest")] = true
	}
	b.cancel = rapid.SampledFrom([]int64{0, 15, 25, 99, 99}).Draw(t, "cancel")
	b.grown, b.messages = coin("grown"), coin("messages")
	b.answers = answers(rapid.IntRange(0, 1).Draw(t, "answers"))
	return b
}

// unlucky lets a history have its share of trouble.
func unlucky(t *rapid.T, b *bounds) {
	n := func(label string, most int) int { return rapid.IntRange(0, most).Draw(t, label) }
	b.faults, b.parks, b.retries = n("faults", 6), n("parks", 2), n("retries", 3)
	b.throttles, b.outages, b.waits = n("throttles", 4), n("outages", 5), 20
	b.looks, b.reversals = n("looks", 2), n("reversals", 1)
}

// longHistory is one random history of a world, checked after every move, and then brought to rest.
type longHistory struct {
	*world
	t     *rapid.T
	moved []move
	told  []string
}

func (h *longHistory) happen(m move) {
	h.told = append(h.told, m.String())
	h.apply(m)
	h.check(h.broken())
}

func (h *longHistory) check(why string) {
	if why != "" {
		h.t.Fatalf("%s\n  %s\n%s", why, strings.Join(h.told, "\n  "), h)
	}
}

// live makes random moves. A cancel comes late enough for something to have happened, and time passes now and then, or when
// nothing else can happen.
func (h *longHistory) live(steps int) {
	cancelAfter := rapid.IntRange(0, steps).Draw(h.t, "cancelAfter")
	for i := range steps {
		h.moved = h.moves(h.moved[:0])
		mayWait := rapid.IntRange(0, 9).Draw(h.t, "mayWait") == 0
		unlikely := func(m move) bool { return m.kind == moveCancel && i < cancelAfter || m.kind == moveWait && !mayWait }
		if !slices.ContainsFunc(h.moved, func(m move) bool { return !unlikely(m) }) {
			unlikely = func(m move) bool { return m.kind == moveCancel && i < cancelAfter }
		}
		h.moved = slices.DeleteFunc(h.moved, unlikely)
		if len(h.moved) == 0 {
			return
		}
		h.happen(h.moved[rapid.IntRange(0, len(h.moved)-1).Draw(h.t, "move")])
		h.repeat()
	}
}

// repeat makes what may be repeated happen again: it changes nothing (G11).
func (h *longHistory) repeat() {
	before := h.encode(nil)
	h.repeats()
	if !bytes.Equal(before, h.encode(nil)) {
		h.breaks("G11: a repeat changed something")
	}
	h.check(h.bad)
}

// rest ends the trouble and lets everything happen that still will, in any order, until only people can move anything.
func (h *longHistory) rest() {
	b := *h.b
	b.faults, b.parks, b.retries, b.throttles, b.outages, b.waits = 0, 0, 0, 0, 0, 0
	h.world.b = &b
	for idle := 0; idle < 2; {
		h.moved = slices.DeleteFunc(h.moves(h.moved[:0]), move.optional)
		if len(h.moved) == 0 {
			// Backoffs and waits end, deadlines pass.
			idle++
			h.happen(move{kind: moveWait})
			continue
		}
		idle = 0
		h.happen(h.moved[rapid.IntRange(0, len(h.moved)-1).Draw(h.t, "move")])
		if len(h.told) > 5000 {
			h.check("the history does not come to rest")
		}
	}
	h.check(h.stuck())
}

// end brings the history to rest, and cancels what stands then.
func (h *longHistory) end() {
	h.rest()
	if h.b.cancel != 0 && !h.cancelled {
		h.happen(move{kind: moveCancel})
		h.rest()
	}
}

func newHistory(t *rapid.T, b *bounds) *longHistory {
	h := &longHistory{world: newWorld(b), t: t}
	h.keepUndone = true
	return h
}

func TestG09LongHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawWorld(t)
		unlucky(t, &b)
		for range historiesPerWorld {
			h := newHistory(t, &b)
			h.live(rapid.IntRange(10, 150).Draw(t, "steps"))
			h.end()
		}
	})
}

// Without trouble, each saga's steps are undone in exactly the reverse of their order of completion.
func TestG07UndoIsTheReverseOfCompletion(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawWorld(t)
		for e := range b.revert {
			for d := range b.revert[e] {
				if b.revert[e][d] == saga.RevertBroken {
					b.revert[e][d] = saga.RevertPinned
				}
			}
		}
		h := newHistory(t, &b)
		h.live(rapid.IntRange(10, 80).Draw(t, "steps"))
		h.end()
		for _, s := range h.agg.Sagas {
			e := eventIndex(s)
			var last int64 = 1 << 62
			for _, p := range h.undone {
				if p.e != e {
					continue
				}
				seq := h.step(p.e, p.d, do).Seq
				if seq >= last {
					t.Fatalf("e%d undid %v, not the reverse of completion\n  %s\n%s", e+1, h.undone, strings.Join(h.told, "\n  "), h)
				}
				last = seq
			}
		}
	})
}
