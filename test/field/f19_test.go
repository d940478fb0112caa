package field

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestF19 is "rebalance with calls in flight: the zombie". G5: a result is accepted from the holder of the step's epoch only, except
// that a success is proof whoever brings it; G12. Eager assignment: TestG05CallsInFlightOutliveARebalance in package consumers.
func TestF19(t *testing.T) {
	t.Parallel()
	f := flat().with(sim.Billing, func(d *file) { d.timeout = "3s" })
	delete(f.files, "inventory")
	delete(f.files, "shipping")
	a := startApart(t, f, 1)
	first := a.consumers[sim.Billing][0]
	inFlight := func(ids []string) {
		t.Helper()
		a.until(func() (bool, string) {
			n := 0
			for _, id := range ids {
				n += len(a.calls(id, sim.Billing, sim.Do))
			}
			return n == len(ids), fmt.Sprintf("%d calls of %d", n, len(ids))
		})
	}
	five := func() (ids []string) {
		for range 5 {
			ids = append(ids, a.create())
		}
		return ids
	}

	// A second instance joins while five calls are out: they end where they were begun.
	a.faults(sim.Fault{ID: "slow", Destination: sim.Billing, Action: sim.Hang, At: sim.HangDuring, Duration: sim.Duration(1500 * time.Millisecond), Next: 5})
	moved := five()
	inFlight(moved)
	second := a.consumer(sim.Billing)
	second.AwaitReady()
	a.awaitMembers(sim.Billing, 2)
	for _, id := range moved {
		a.await(id, "CONFIRMED")
		a.once(id, sim.Billing, 1)
	}

	// The first freezes with five calls out, until its leases have run out and its partition has gone to the second.
	zombie := workerOf(first)
	second.Pause() // so that the first has the claims
	a.faults(sim.Fault{ID: "held", Destination: sim.Billing, Action: sim.Hang, At: sim.HangAfter, Duration: sim.Duration(2 * time.Second), Next: 5})
	frozen := five()
	inFlight(frozen)
	first.Pause()
	second.Continue()
	for _, id := range frozen {
		a.await(id, "CONFIRMED")
	}
	later := a.create()
	a.await(later, "CONFIRMED") // read by the second: the partition has moved
	require.Equal(t, workerOf(second), a.text(`SELECT worker FROM ebb.calls WHERE destination = 'billing' AND settled AND saga_id = $1::uuid`, a.sagaID(later)))

	first.Continue()
	const lateResults = `SELECT count(*)::text FROM ebb.calls WHERE worker = $1 AND epoch = 1 AND error <> 'the lease of the worker ran out'
		AND saga_id IN (SELECT saga_id FROM ebb.steps WHERE destination = 'billing' AND epoch > 1)`
	a.until(func() (bool, string) {
		n := a.text(lateResults, zombie)
		return n == "5", n + " late results have come"
	})
	a.awaitMembers(sim.Billing, 2)
	last := a.create()
	a.await(last, "CONFIRMED")

	for _, id := range frozen {
		a.once(id, sim.Billing, 2)
	}
	a.once(later, sim.Billing, 1)
	a.once(last, sim.Billing, 1)
	require.Equal(t, fmt.Sprint(a.n), a.text(`SELECT count(*)::text FROM ebb.steps WHERE destination = 'billing'`))
	require.Equal(t, fmt.Sprint(a.n), a.text(`SELECT count(*)::text FROM ebb.calls WHERE destination = 'billing' AND settled`))
	require.Equal(t, "0", a.text(`SELECT count(*)::text FROM ebb.outbox WHERE type NOT IN ('StepSucceeded', 'SagaCompleted')`))
	require.Equal(t, fmt.Sprint(a.n), a.text(`SELECT count(*)::text FROM ebb.outbox WHERE type = 'SagaCompleted'`))
	// The zombie has committed nothing for the partition that it lost: the group stands at the end.
	a.read(harness.Group(sim.Billing))
	require.Equal(t, fmt.Sprint(a.n), a.text(`SELECT next_offset::text FROM ebb.offsets WHERE reader = 'ebb.billing' AND topic = $1`, schemas.TopicOrder))
	a.oracle()
}
