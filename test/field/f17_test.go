package field

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestF17 is "failure recorded, compensation event never published (or the reverse)". G1: the request goes out through the outbox row
// of the transaction that recorded the refusal; G9: no saga depends on a message; G11, G12.
func TestF17(t *testing.T) {
	t.Parallel()
	f := flat()
	delete(f.files, "shipping")
	a := startApart(t, f, 1)
	billing := a.consumers[sim.Billing][0]

	// failing is an order that billing refuses while Kafka gets nothing, with the consumer killed right after it has recorded that.
	failing := func(cut func()) string {
		a.faults(sim.Fault{Destination: sim.Billing, Action: sim.Hang, At: sim.HangBefore, Duration: sim.Duration(time.Second), Next: 1})
		id := a.create()
		a.refuse(sim.Billing, id)
		a.until(func() (bool, string) {
			return len(a.calls(id, sim.Billing, sim.Do)) == 1 && len(a.effects(id, sim.Inventory, sim.Do)) == 1, "billing is not called"
		})
		cut()
		a.until(func() (bool, string) {
			state := a.text(`SELECT state FROM ebb.sagas WHERE aggregate_id = $1`, id)
			return state != "RUNNING", state
		})
		billing.Kill()
		return id
	}
	requests := func(id string) (n int) {
		client, admin := a.ebb.Kafka()
		for _, r := range harness.Records(t, client, admin, schemas.TopicCompensation) {
			if string(r.Key) == id {
				n++
			}
		}
		return n
	}
	unwoundOnce := func(id string) {
		a.await(id, "REJECTED")
		a.read(harness.CompensatorGroup)
		after := a.create() // what would come of a second unwinding would have come before this one is done
		a.await(after, "CONFIRMED")
		require.Equal(t, []sim.Kind{sim.StockHold, sim.StockRelease}, a.kinds(id))
		a.sameCalls(id, sim.Inventory, sim.Undo, 1)
		a.sameCalls(id, sim.Billing, sim.Do, 1)
		for _, kind := range []string{"CompensationRequested", "SagaCompensated"} {
			require.Equal(t, "1", a.text(`SELECT count(*)::text FROM ebb.outbox WHERE type = $1 AND aggregateid = $2`, kind, id), kind)
		}
	}

	// Nothing can be published: the request stays with the failure, and the compensator finds the saga by itself.
	id := failing(a.relay.Pause)
	require.Zero(t, requests(id))
	billing.Restart()
	a.compensator.WaitLine("sweep moved what no message had reached")
	a.until(func() (bool, string) { return len(a.effects(id, sim.Inventory, sim.Undo)) == 1, "not undone" })
	require.Zero(t, requests(id))
	a.relay.Continue()
	unwoundOnce(id)
	require.Equal(t, 1, requests(id))

	// Published and acknowledged, but the relay dies before it knows: it is published again. And the compensator dies after it has
	// taken the request in, before the group's offset is committed.
	id = failing(func() {
		a.relay.Kill()
		a.compensator.Kill()
	})
	billing.Restart()
	for requests(id) == 0 {
		a.relay.Launch("EBB_FAILPOINTS=relay.acked=kill@1")
		a.relay.WaitLine("failpoint relay.acked: kill")
		a.relay.Wait()
	}
	a.relay.Restart()
	a.until(func() (bool, string) { return requests(id) >= 2, "not published again" })
	a.compensator.Launch("EBB_FAILPOINTS=intake.after-take.ebb.compensator=kill@1")
	a.compensator.WaitLine("failpoint intake.after-take.ebb.compensator: kill")
	a.compensator.Wait()
	a.compensator.Restart()
	unwoundOnce(id)
	a.oracle()
}
