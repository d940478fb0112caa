package field

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// TestF03 is "the dedupe mark and the side effect straddle a crash". G2: an offset moves only after its record is durable; G3: intent
// before effect; G12: a kill at any of these places loses nothing and doubles nothing.
func TestF03(t *testing.T) {
	t.Parallel()
	// leased makes the claims of the dead run out soon.
	leased := func(d *file) { d.timeout = "2s" }

	t.Run("P0 read, not durable", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), failpoints("intake.before-take.ebb.billing=pause@1"))
		id := s.create()
		s.ebb.WaitLine("failpoint intake.before-take.ebb.billing: pause")
		s.read("ebb.inventory") // which commits its offsets as often
		require.Positive(t, s.behind("ebb.billing"), "the offset waits for the journal")
		s.kill()
		s.restart()
		s.completed(id, 1)
		s.oracle()
	})

	// Billing is claimed in the transaction that records the last result it waited for: all of it happens, or nothing.
	for _, at := range []struct {
		name  string
		state string
		calls int // of the two that billing comes after
	}{
		{"journal.claim.before-commit.billing", "WAITING", 3},
		{"journal.claim.after-commit.billing", "CALLING", 2},
	} {
		t.Run("P1 with the result it waited for, "+at.name, func(t *testing.T) {
			t.Parallel()
			f := chain().with(sim.Billing, leased).with(sim.Shipping, leased).with(sim.FraudCheck, leased)
			s := start(t, f, failpoints(at.name+"=kill@1"))
			id := s.create()
			s.killed(at.name)
			require.Equal(t, at.state, s.step(id, sim.Billing, "do").State)
			require.Empty(t, s.calls(id, sim.Billing, ""))
			s.restart()
			s.completed(id, 1)
			require.Len(t, append(s.calls(id, sim.Shipping, sim.Do), s.calls(id, sim.FraudCheck, sim.Do)...), at.calls)
			s.oracle()
		})
	}

	t.Run("P1 claimed, not called", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, leased), failpoints("consumers.before-send.billing=kill@1"))
		id := s.create()
		s.killed("consumers.before-send.billing")
		require.Equal(t, stepRow{State: "CALLING", Attempt: 1, Epoch: 1}, s.step(id, sim.Billing, "do"))
		require.Empty(t, s.calls(id, sim.Billing, ""))
		s.restart()
		s.completed(id, 1)
		require.EqualValues(t, 2, s.step(id, sim.Billing, "do").Epoch, "taken over, not skipped")
		s.oracle()
	})

	t.Run("P2 answered, not recorded", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, leased), failpoints("consumers.after-reply.billing=kill@1"))
		id := s.create()
		s.killed("consumers.after-reply.billing")
		require.Equal(t, stepRow{State: "CALLING", Attempt: 1, Epoch: 1}, s.step(id, sim.Billing, "do"))
		require.Len(t, s.effects(id, sim.Billing, sim.Do), 1)
		s.restart()
		s.completed(id, 2)
		s.firstReplyIsKept(id)
		s.oracle()
	})

	t.Run("P3 recorded, offset not committed", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), "")
		before := s.create()
		s.await(before, "CONFIRMED")
		s.read("ebb.billing")
		require.Zero(t, s.ebb.Stop())
		s.restart("intake.after-take.ebb.billing=pause@1")
		id := s.create()
		s.ebb.WaitLine("failpoint intake.after-take.ebb.billing: pause")
		s.await(id, "CONFIRMED")
		end := s.behind("ebb.billing")
		require.Positive(t, end, "the group's offset must not have passed the record")
		s.kill()
		s.restart()
		s.read("ebb.billing") // the record comes again
		after := s.create()
		s.completed(after, 1)
		s.completed(id, 1)
		s.completed(before, 1)
		s.oracle()
	})

	t.Run("P4 offset committed", func(t *testing.T) {
		t.Parallel()
		// In Ebb the offset may pass a record whose work is not done: the record is in the journal.
		s := start(t, chain().with(sim.Billing, leased), "")
		s.faults(sim.Fault{Destination: sim.Billing, Action: sim.Hang, At: sim.HangDuring, Next: 1})
		id := s.create()
		s.until(func() (bool, string) { return len(s.calls(id, sim.Billing, sim.Do)) == 1, "not called" })
		s.read("ebb.billing")
		s.kill()
		s.restart()
		s.completed(id, 2)
		s.read("ebb.billing")
		s.kill()
		s.restart()
		after := s.create()
		s.completed(after, 1)
		s.completed(id, 2)
		s.oracle()
	})

	t.Run("P5 third of four in flight", func(t *testing.T) {
		t.Parallel()
		f := chain().with(sim.Shipping, func(d *file) { d.after, d.timeout = "[inventory, fraudCheck]", "2s" })
		s := start(t, f, failpoints("consumers.after-reply.shipping=kill@1"))
		id := s.create()
		s.killed("consumers.after-reply.shipping")
		s.restart()
		s.completed(id, 1)
		s.sameCalls(id, sim.Shipping, sim.Do, 2)
		s.sameCalls(id, sim.Inventory, sim.Do, 1)
		s.cancel(id) // the receipts are there
		s.await(id, "CANCELLED")
		require.Equal(t, []sim.Kind{
			sim.StockHold, sim.Shipment, sim.HighValue, sim.HighValueCancel, sim.ShipmentCancel, sim.StockRelease,
		}, s.kinds(id))
		s.oracle()
		s.rerun()
	})
}
