package field

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
)

// TestF12 is "double refund": the failure three times, on two partitions and two compensators at once, and the reply to the refund is
// lost. G4: one key; G11: the same records again add no effect.
func TestF12(t *testing.T) {
	t.Parallel()
	const hold = "intake.before-take.ebb.compensator=pause@1"
	s := startOn(t, flat(), failpoints(hold), 2)
	other := s.role("ebb.compensator", failpoints(hold), "compensator")
	s.faults(
		sim.Fault{ID: "stock", Destination: sim.Inventory, Action: sim.ReplyWith, Status: 429}, // until the charge is made
		sim.Fault{Destination: sim.Billing, Direction: sim.Undo, Attempt: 1, Action: sim.Lose},
	)
	s.refuse(sim.Inventory, "1")
	id := s.create()
	s.until(func() (bool, string) { return len(s.effects(id, "", sim.Do)) == 2, "not charged and shipped" })
	s.remove("stock")
	s.repeat(schemas.TopicCompensation, "CompensationRequested", 2)
	resume(s.ebb)
	resume(other)
	s.await(id, "REJECTED")
	s.read("ebb.compensator")

	again := strings.Count(s.ebb.Output()+other.Output(), "compensation was asked for again")
	require.GreaterOrEqual(t, again, 2, "the other deliveries are logged") // all three if the sweeper was first
	require.Len(t, s.effects(id, sim.Billing, sim.Undo), 1)
	s.sameCalls(id, sim.Billing, sim.Undo, 2)
	require.Equal(t, "1", s.text(`SELECT count(*)::text FROM ebb.steps WHERE destination = 'billing' AND direction = 'undo'`))
	s.oracle()
	s.rerun()
}
