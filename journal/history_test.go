package journal

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// twin runs the same moves on two stores, of which one loads every aggregate whole and the other only what it must.
type twin struct {
	whole, chosen *testBundle
}

func newTwin(t *testing.T, dests ...Destination) *twin {
	w := &twin{setup(t, dests...), setup(t, dests...)}
	w.whole.histories.whole = 1 << 20
	w.chosen.histories.whole = 0
	return w
}

func (w *twin) both(f func(b *testBundle)) {
	f(w.whole)
	f(w.chosen)
}

// shape is everything about an aggregate's sagas that transitions decide.
func shape(t *testing.T, b *testBundle) string {
	t.Helper()
	list, err := b.SagasOf(t.Context(), Key{"order", "o-1"})
	require.NoError(t, err)
	out := ""
	for _, v := range list {
		out += fmt.Sprintf("%d %s %q %q\n", v.Version, v.State, v.Attention, v.Reason)
		for _, s := range v.Steps {
			out += fmt.Sprintf("    %s %s %s maybe %t attempt %d %q %q\n", s.Destination, s.Direction, s.State, s.Maybe, s.Attempt, s.Outcome, s.Reason)
		}
	}
	return out
}

// What is left out of a long history must not change what any transition decides: the same random moves on both stores end the same.
func TestG08G09ChosenHistoriesDecideLikeWholeOnes(t *testing.T) {
	t.Parallel()
	types := []string{"OrderCreated", "OrderStatusUpdated"}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newTwin(t, dest("a").on(types...), dest("b", "a").on(types...), dest("c").on("OrderStatusUpdated"))
			r := rand.New(rand.NewPCG(seed, 1))
			for range 60 {
				w.move(t, r)
				require.Equal(t, shape(t, w.whole), shape(t, w.chosen))
			}
			require.Equal(t, w.whole.published(), w.chosen.published())
		})
	}
}

var ends = []saga.Result{
	yes, yes, yes, {Class: saga.ClassRefused, Reason: "no"}, {Class: saga.ClassUnknown, Reason: "cut"}, {Class: saga.ClassParked, Reason: "odd"},
}

// move makes one random move on both.
func (w *twin) move(t *testing.T, r *rand.Rand) {
	t.Helper()
	d := []string{"a", "b", "c"}[r.IntN(3)]
	switch n := r.IntN(20); {
	case n < 8:
		v := 1 + r.IntN(14)
		eventType := "OrderStatusUpdated"
		if v == 1 {
			eventType = "OrderCreated"
		}
		w.both(func(b *testBundle) { b.read(d, event(v, eventType, "o-1", int64(v))) })
	case n < 17:
		end := ends[r.IntN(len(ends))]
		var first []Claimed
		w.both(func(b *testBundle) {
			got := b.claim(d)
			slices.SortFunc(got, func(x, y Claimed) int {
				return cmp.Compare(x.Saga.String()+x.Dir.String(), y.Saga.String()+y.Dir.String())
			})
			if b == w.whole {
				first = got
			}
			require.Len(t, got, len(first))
			for i, c := range got {
				require.Equal(t, first[i].Saga, c.Saga)
				require.NoError(t, b.end(c, end))
			}
		})
	case n < 18:
		v := int64(2 + r.IntN(14))
		w.both(func(b *testBundle) {
			require.NoError(t, b.Compensate(t.Context(), Reader{Name: "ebb.compensator"}, []Signal{{
				Position: Position{"orders", 0, b.offset.Add(1)},
				Cancel:   &Cancel{Event: eventID(99), Aggregate: Key{"order", "o-1"}, Version: v, Reason: "customer"},
			}}))
		})
	case n < 19:
		id := eventID(1 + r.IntN(14))
		w.both(func(b *testBundle) {
			// Most steps are not parked; that both decide alike is seen in their shapes.
			_ = b.Retry(t.Context(), id, d, saga.Do, Action{Who: "test", Reason: "again"})
		})
	default:
		w.both(func(b *testBundle) {
			_, err := b.Sweep(t.Context(), -time.Minute, 100)
			require.NoError(t, err)
		})
	}
}

func TestLongHistoryIsNotLoaded(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a").on("OrderCreated", "OrderStatusUpdated"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	first := b.do("a", yes)
	for n := 2; n <= 3*longHistory; n++ {
		b.read("a", event(n, "OrderStatusUpdated", "o-1", int64(n)))
		b.do("a", yes)
	}
	require.True(t, b.histories.long(Key{"order", "o-1"}))
	conn, err := b.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	u, err := b.begin(t.Context(), conn, []need{about(Key{"order", "o-1"}, first.Saga)}, nil)
	require.NoError(t, err)
	defer u.rollback(t.Context())
	require.Len(t, u.aggs[Key{"order", "o-1"}].agg.Sagas, 1, "all have ended; only the one that is asked for is loaded")
}

// chosenOnly is a store that never loads whole aggregates.
func chosenOnly(t *testing.T, dests ...Destination) *testBundle {
	b := setup(t, dests...)
	b.histories.whole = 0
	return b
}

func TestG08OlderEventIsSupersededByOneThatHasEnded(t *testing.T) {
	t.Parallel()
	b := chosenOnly(t, dest("a").on("OrderCreated", "OrderStatusUpdated"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	b.do("a", yes)
	b.read("a", event(3, "OrderStatusUpdated", "o-1", 3))
	b.do("a", yes)
	b.read("a", event(2, "OrderStatusUpdated", "o-1", 2))
	require.Empty(t, b.claim("a"))
	require.Contains(t, b.saga(2).Attention, "superseded")
}

func TestRefusedCreateUnwindsLaterSagasThatHaveEnded(t *testing.T) {
	t.Parallel()
	b := chosenOnly(t, dest("a"), dest("c").on("OrderStatusUpdated"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	b.read("c", event(2, "OrderStatusUpdated", "o-1", 2))
	b.do("c", yes)
	require.Equal(t, "COMPLETED", b.saga(2).State)
	b.do("a", saga.Result{Class: saga.ClassRefused, Reason: "no"})
	require.Equal(t, "FAILING", b.saga(2).State)
}

func TestG07CompletionOrderSpansSagasThatAreNotLoaded(t *testing.T) {
	t.Parallel()
	b := chosenOnly(t, dest("a"), dest("c").on("OrderStatusUpdated"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	b.do("a", yes)
	b.read("c", event(2, "OrderStatusUpdated", "o-1", 2))
	b.do("c", yes)
	require.NoError(t, b.Compensate(t.Context(), Reader{Name: "ebb.compensator"}, []Signal{{
		Position: Position{"orders", 0, 99}, Cancel: &Cancel{Event: eventID(9), Aggregate: Key{"order", "o-1"}, Version: 9, Reason: "customer"},
	}}))
	_, err := b.Sweep(t.Context(), -time.Minute, 10)
	require.NoError(t, err)
	require.Empty(t, b.claim("a"), "what was done last is undone first, whatever was loaded when it was done")
	b.do("c", saga.Result{Class: saga.ClassSucceeded})
	b.do("a", saga.Result{Class: saga.ClassSucceeded})
}
