package journal

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// unwind lets the compensator begin what has been asked for.
func (b *testBundle) unwind() {
	b.t.Helper()
	_, err := b.Sweep(b.t.Context(), 0, 100)
	require.NoError(b.t, err)
}

// Each event of an order is carried out, though one of its type has been before: what is done is known by event, not by type.
func TestEveryEventIsCarriedOut(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("n").on("OrderStatusUpdated"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	b.do("a", yes)
	keys := map[saga.ID]bool{}
	for n := 2; n <= 4; n++ {
		b.read("n", event(n, "OrderStatusUpdated", "o-1", int64(n)))
		keys[b.do("n", yes).Saga] = true
		require.Equal(t, "COMPLETED", b.saga(n).State)
	}
	require.Len(t, keys, 3)
}

// A change that is refused takes back what it has done, and nothing of the events before it.
func TestRefusedChangeUnwindsItself(t *testing.T) {
	t.Parallel()
	types := []string{"OrderCreated", "OrderStatusUpdated"}
	b := setup(t, dest("a").on(types...), dest("b", "a").on("OrderStatusUpdated"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	b.do("a", yes)
	b.read("a", event(2, "OrderStatusUpdated", "o-1", 2))
	b.read("b", event(2, "OrderStatusUpdated", "o-1", 2))
	b.do("a", yes)
	b.do("b", saga.Result{Class: saga.ClassRefused, Reason: "no"})
	b.unwind()
	undo := b.do("a", saga.Result{Class: saga.ClassSucceeded})
	require.Equal(t, eventID(2), undo.Saga)
	require.Equal(t, saga.Undo, undo.Dir)
	b.unwind()
	require.Empty(t, b.claim("a"))
	require.Equal(t, "COMPENSATED", b.saga(2).State)
	require.Equal(t, "COMPLETED", b.saga(1).State)
}

// A customer's cancel in the middle of an unwinding shares its undo steps: nothing is undone twice.
func TestG11CancelDuringAnUnwindingUndoesNothingTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("b", "a"), dest("c", "b"))
	for _, d := range []string{"a", "b", "c"} {
		b.read(d, event(1, "OrderCreated", "o-1", 1))
	}
	b.do("a", yes)
	b.do("b", yes)
	b.do("c", saga.Result{Class: saga.ClassRefused, Reason: "no"})
	b.unwind()
	cancel := func() {
		require.NoError(t, b.Compensate(t.Context(), Reader{Name: "ebb.compensator"}, []Signal{{
			Position: Position{"orders", 0, b.offset.Add(1)},
			Cancel:   &Cancel{Event: eventID(9), Aggregate: Key{"order", "o-1"}, Version: 2, Reason: "customer"},
		}}))
		b.unwind()
	}
	flying := b.claim("b") // the undo of b is out
	require.Len(t, flying, 1)
	cancel()
	require.Empty(t, b.claim("b"))
	require.Empty(t, b.claim("a"))
	require.NoError(t, b.end(flying[0], saga.Result{Class: saga.ClassSucceeded}))
	b.do("a", saga.Result{Class: saga.ClassSucceeded})
	require.Equal(t, "COMPENSATED", b.saga(1).State)
	cancel()
	require.Empty(t, append(b.claim("a"), b.claim("b")...))
	var undone int
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT count(*) FROM ebb.outbox WHERE type = 'StepUndone'").Scan(&undone))
	require.Equal(t, 2, undone)
}

// Many that claim at once get every step once.
func TestG05EveryStepIsClaimedByOne(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	const orders, workers = 60, 8
	for n := range orders {
		b.read("a", event(n+1, "OrderCreated", fmt.Sprint("o-", n+1), 1))
	}
	other, err := Open(Config{Pool: b.pool, Encoder: typeEncoder{}})
	require.NoError(t, err)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		by    = map[saga.ID][]string{}
		start = make(chan struct{})
	)
	for w := range workers {
		store, name := []*Store{b.Store, other}[w%2], fmt.Sprint("w", w)
		wg.Go(func() {
			<-start
			for range 20 * orders {
				got, err := store.Claim(t.Context(), ClaimRequest{Destination: "a", Worker: name, Limit: 5, Lease: time.Minute,
					Prepare: func(_ context.Context, c Candidate) Prepared { return Prepared{Content: []byte(c.Dest)} }})
				mu.Lock()
				for _, c := range got.Claimed {
					by[c.Saga] = append(by[c.Saga], name)
				}
				all := len(by) == orders || err != nil
				mu.Unlock()
				if all {
					return
				}
			}
		})
	}
	close(start)
	wg.Wait()
	require.Len(t, by, orders)
	for id, names := range by {
		require.Len(t, names, 1, "%s by %v", id, names)
	}
}
