package field

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// wrongPlaceholder names a field that no reply has.
const wrongPlaceholder = `revert:
  method: POST
  url: /api/domestic-shipping/{shipmentId}/cancel
  extract: { shipmentId: "response:$.shipmentNumber" }`

// TestF10 is "reported 'compensated' though an undo failed or had no handler". G6: the undo is prepared at the moment of success; G7:
// what cannot go on holds back only what it depended on; G9: COMPENSATED only with proof for every step.
func TestF10(t *testing.T) {
	t.Parallel()
	impatient := func(d *file) { d.patience = "1s" }

	t.Run("shipping cannot be cancelled, stock depends on it", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Shipping, impatient), "")
		s.faults(sim.Fault{Destination: sim.Shipping, Direction: sim.Undo, Action: sim.ReplyWith, Status: 500})
		s.refuse(sim.Billing, "1")
		id := s.create()
		s.awaitAttention(id, "shipping undo parked")
		require.Equal(t, "COMPENSATING", s.saga(id).State)
		require.Equal(t, "PENDING", s.order(id).Status)
		require.Equal(t, map[string]string{
			"inventory do": "SUCCEEDED", "fraudCheck do": "SUCCEEDED", "shipping do": "SUCCEEDED", "billing do": "REFUSED",
			"inventory undo": "WAITING", "fraudCheck undo": "SKIPPED", "shipping undo": "PARKED",
		}, s.states(id))
		out, code := s.run("saga", "list", "--attention")
		require.Zero(t, code, out)
		require.Contains(t, out, s.sagaID(id))
		require.Contains(t, out, "shipping undo parked")
		require.Contains(t, s.metrics(), `ebb_steps{destination="shipping",state="parked"} 1`)
		tries := len(s.calls(id, sim.Shipping, sim.Undo))

		s.heal()
		out, code = s.run("saga", "retry", s.sagaID(id), "shipping", "undo", "--reason", "the carrier is back")
		require.Zero(t, code, out)
		s.await(id, "REJECTED")
		require.Empty(t, s.order(id).Attention)
		require.Equal(t, []sim.Kind{sim.StockHold, sim.Shipment, sim.ShipmentCancel, sim.StockRelease}, s.kinds(id))
		s.sameCalls(id, sim.Shipping, sim.Undo, tries+1)
		s.sameCalls(id, sim.Inventory, sim.Undo, 1)
		require.Equal(t, "1", s.text(`SELECT count(*)::text FROM ebb.operator_actions`))
		s.oracle()
	})

	t.Run("shipping cannot be cancelled, stock does not depend on it", func(t *testing.T) {
		t.Parallel()
		s := start(t, flat().with(sim.Shipping, impatient).with(sim.Billing, func(d *file) { d.after = "[inventory, shipping]" }), "")
		s.faults(sim.Fault{Destination: sim.Shipping, Direction: sim.Undo, Action: sim.ReplyWith, Status: 500})
		s.refuse(sim.Billing, "1")
		id := s.create()
		s.awaitAttention(id, "shipping undo parked")
		s.until(func() (bool, string) { return s.states(id)["inventory undo"] == "SUCCEEDED", "stock is held" })
		require.Equal(t, "COMPENSATING", s.saga(id).State)
		tries := len(s.calls(id, sim.Shipping, sim.Undo))
		s.heal()
		out, code := s.run("saga", "retry", s.sagaID(id), "shipping", "undo", "--reason", "the carrier is back")
		require.Zero(t, code, out)
		s.await(id, "REJECTED")
		s.sameCalls(id, sim.Shipping, sim.Undo, tries+1)
		s.sameCalls(id, sim.Inventory, sim.Undo, 1)
		require.Len(t, s.effects(id, "", sim.Undo), 2)
		s.oracle()
	})

	t.Run("the revert is removed from the file", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), "")
		id := s.create()
		s.await(id, "CONFIRMED")
		require.Zero(t, s.ebb.Stop())
		s.rewrite(chain().with(sim.Shipping, func(d *file) { d.revert = "#" }))
		s.ebb.Launch()
		require.Equal(t, 2, s.ebb.Wait(), "a file that does not say how to undo is refused")
		require.Contains(t, s.ebb.Output(), "shipping.yaml")
		require.Contains(t, s.ebb.Output(), "revert is missing")
		s.rewrite(chain().with(sim.Shipping, func(d *file) { d.revert = "revert: none" }))
		s.restart()
		s.cancel(id)
		s.await(id, "CANCELLED")
		require.Equal(t, []sim.Kind{
			sim.StockHold, sim.Shipment, sim.HighValue, sim.HighValueCancel, sim.ShipmentCancel, sim.StockRelease,
		}, s.kinds(id))
		s.oracle()
	})

	t.Run("a placeholder that cannot be resolved", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Shipping, func(d *file) { d.revert = wrongPlaceholder }), "")
		id := s.create()
		s.await(id, "CONFIRMED") // a success whose undo cannot be rendered is still a success
		s.cancel(id)
		s.awaitAttention(id, "shipping undo parked")
		s.until(func() (bool, string) { return s.states(id)["billing undo"] == "SUCCEEDED", "not refunded" })
		out, code := s.run("saga", "retry", s.sagaID(id), "shipping", "undo", "--reason", "try")
		require.Equal(t, refused, code, out)
		require.Contains(t, out, "no request to send")
		after := s.create()
		s.completed(after, 1)
		require.Equal(t, "COMPENSATING", s.saga(id).State)
		require.Equal(t, "CANCELLING", s.order(id).Status)
		require.Empty(t, s.calls(id, sim.Shipping, sim.Undo), "no call without the id that it needs")
		require.Equal(t, "WAITING", s.states(id)["inventory undo"])
		s.oracle()
	})

	for _, kills := range []struct {
		begin, between string
		cancellations  int
	}{
		{"journal.compensate.before-commit.begin", "consumers.after-reply.shipping", 2},
		{"journal.compensate.after-commit.begin", "journal.record.after-commit.shipping", 1},
	} {
		t.Run("killed at the begin and between two reverts, "+kills.between, func(t *testing.T) {
			t.Parallel()
			// After the commit shipping may claim its undo before the signal comes: its second call waits, so that none is sent.
			s := start(t, chain().with(sim.Shipping, func(d *file) { d.timeout = "2s" }),
				failpoints(kills.begin+"=kill@1", "consumers.before-send.shipping=pause@2"))
			s.refuse(sim.Billing, "1")
			id := s.create()
			s.killed(kills.begin)
			require.Empty(t, s.calls(id, "", sim.Undo))
			// Shipping's first is its cancellation now, with stock still held; it may come before the pipeline says that it is ready.
			s.ebb.Launch("EBB_FAILPOINTS=" + kills.between + "=kill@1")
			s.killed(kills.between)
			require.Equal(t, sim.ShipmentCancel, s.effects(id, "", sim.Undo)[0].Kind)
			s.restart()
			s.await(id, "REJECTED")
			require.Equal(t, []sim.Kind{sim.StockHold, sim.Shipment, sim.ShipmentCancel, sim.StockRelease}, s.kinds(id))
			s.sameCalls(id, sim.Shipping, sim.Undo, kills.cancellations)
			s.sameCalls(id, sim.Inventory, sim.Undo, -1)
			s.oracle()
		})
	}
}
