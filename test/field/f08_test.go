package field

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// TestF08 is "compensation overtakes a forward call still in flight". G5: its late success is undone; G7: nothing is undone before it
// is known what was done; G9.
func TestF08(t *testing.T) {
	t.Parallel()
	// Shipping does not read before the saga is over.
	s := start(t, flat().with(sim.Billing, func(d *file) { d.timeout = "500ms" }), failpoints("intake.before-take.ebb.shipping=pause@1"))
	s.faults(
		sim.Fault{ID: "stock", Destination: sim.Inventory, Action: sim.ReplyWith, Status: 429}, // until billing's call is out
		sim.Fault{Destination: sim.Billing, Direction: sim.Do, Action: sim.Hang, At: sim.HangDuring, Duration: sim.Duration(1500 * time.Millisecond), Next: 1},
	)
	s.refuse(sim.Inventory, "1")
	id := s.create()
	s.until(func() (bool, string) { return len(s.calls(id, sim.Billing, sim.Do)) == 1, "billing was not called" })
	s.remove("stock")
	s.await(id, "REJECTED")

	require.Equal(t, []sim.Kind{sim.HighValue, sim.HighValueCancel}, s.kinds(id))
	s.sameCalls(id, sim.Billing, sim.Do, -1)
	s.sameCalls(id, sim.Billing, sim.Undo, 1)

	s.ebb.WaitLine("failpoint intake.before-take.ebb.shipping: pause")
	resume(s.ebb)
	s.read("ebb.shipping")
	s.refuse(sim.Inventory)
	after := s.create()
	s.completed(after, 1)
	require.Empty(t, s.calls(id, sim.Shipping, ""), "shipping finds the order stopped")
	require.Equal(t, "COMPENSATED", s.saga(id).State)
	s.oracle()
}
