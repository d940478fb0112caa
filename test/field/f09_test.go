package field

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
)

// TestF09 is "cancel races the forward path". G9: an order has one end; G11: a cancel that comes again adds nothing.
func TestF09(t *testing.T) {
	t.Parallel()
	done := []sim.Kind{sim.StockHold, sim.Shipment, sim.HighValue}
	undone := append(done[:3:3], sim.HighValueCancel, sim.ShipmentCancel, sim.StockRelease)

	t.Run("a while billing is in flight", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), failpoints("consumers.after-reply.billing=pause@1"))
		id := s.create()
		s.ebb.WaitLine("failpoint consumers.after-reply.billing: pause") // the call is out, and has not come back as far as Ebb knows
		s.cancel(id)
		s.until(func() (bool, string) { return s.saga(id).State == "COMPENSATING", s.saga(id).State })
		require.Equal(t, "CALLING", s.step(id, sim.Billing, "do").State, "the cancel must come in the middle of the call")
		require.Empty(t, s.calls(id, "", sim.Undo), "nothing is undone before the call has ended")
		resume(s.ebb)
		s.await(id, "CANCELLED")
		require.Equal(t, undone, s.kinds(id))
		for _, d := range []string{sim.Billing, sim.Shipping, sim.Inventory} {
			s.sameCalls(id, d, sim.Do, 1)
			s.sameCalls(id, d, sim.Undo, 1)
		}
		s.oracle()
	})

	t.Run("b before anybody has read the order", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), failpoints(
			"intake.before-take.ebb.inventory=pause@1", "intake.before-take.ebb.fraudCheck=pause@1",
			"intake.before-take.ebb.shipping=pause@1", "intake.before-take.ebb.billing=pause@1"))
		id := s.create()
		s.cancel(id)
		s.until(func() (bool, string) {
			return s.text(`SELECT count(*)::text FROM ebb.tombstones`) == "1", "no tombstone"
		})
		require.Equal(t, "0", s.text(`SELECT count(*)::text FROM ebb.sagas`))
		for _, d := range []string{"inventory", "fraudCheck", "shipping", "billing"} {
			s.ebb.WaitLine("failpoint intake.before-take.ebb." + d + ": pause")
		}
		resume(s.ebb)
		s.await(id, "CANCELLED")
		after := s.create()
		s.completed(after, 1)
		require.Empty(t, s.calls(id, "", ""), "the order that is read late is not carried out")
		require.Equal(t, "COMPENSATED", s.saga(id).State)
		s.oracle()
	})

	t.Run("b before shipping has read the order", func(t *testing.T) {
		t.Parallel()
		s := start(t, flat(), failpoints("intake.before-take.ebb.shipping=pause@1"))
		id := s.create()
		s.until(func() (bool, string) { return len(s.effects(id, "", sim.Do)) == 2, "the others are not done" })
		s.cancel(id)
		s.await(id, "CANCELLED")
		resume(s.ebb)
		s.read("ebb.shipping")
		after := s.create()
		s.completed(after, 1)
		require.Empty(t, s.calls(id, sim.Shipping, ""))
		require.Len(t, s.effects(id, "", sim.Undo), 2)
		s.oracle()
	})

	t.Run("c after completion, d twice", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), "")
		id := s.create()
		s.await(id, "CONFIRMED")
		require.Equal(t, done, s.kinds(id))
		s.cancel(id)
		s.cancel(id)
		s.repeat(schemas.TopicOrder, schemas.EventOrderCancelled, 2) // and while it is being unwound
		s.await(id, "CANCELLED")
		s.repeat(schemas.TopicOrder, schemas.EventOrderCancelled, 2) // and after it
		s.cancel(id)
		s.read("ebb.compensator")
		after := s.create()
		s.completed(after, 1)
		require.Equal(t, undone, s.kinds(id))
		for _, d := range []string{sim.Billing, sim.Shipping, sim.Inventory} {
			s.sameCalls(id, d, sim.Undo, 1)
		}
		require.Equal(t, "1", s.text(`SELECT count(*)::text FROM ebb.outbox WHERE type = 'SagaCompensated'`))
		require.Equal(t, "1", s.text(`SELECT count(*)::text FROM ebb.tombstones`))
		s.oracle()
		s.rerun()
	})
}
