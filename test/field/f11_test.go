package field

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// TestF11 is "compensation retried without end or pause": an undo that never works is tried a bounded number of times, with pauses,
// is parked and counted, and holds nobody else up.
func TestF11(t *testing.T) {
	t.Parallel()
	const others = 10
	for name, c := range map[string]struct {
		status, tries int
		reason        string
	}{
		"a definite no parks at once":  {400, 1, "undo refused"},
		"no answer is tried again":     {500, 8, "undo retries exhausted after 8 attempts"},
		"told to come back some times": {429, 8, "undo retries exhausted after 8 attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, chain(), "")
			s.faults(sim.Fault{Destination: sim.Billing, Direction: sim.Undo, Aggregate: "1", Action: sim.ReplyWith, Status: c.status})
			ids := []string{}
			for range others + 1 {
				ids = append(ids, s.create())
			}
			for _, id := range ids {
				s.await(id, "CONFIRMED")
				s.cancel(id)
			}
			for _, id := range ids[1:] {
				s.await(id, "CANCELLED")
			}
			s.awaitAttention("1", "billing undo parked: "+c.reason)
			s.sameCalls("1", sim.Billing, sim.Undo, c.tries)
			require.Equal(t, "1", s.text(`SELECT count(*)::text FROM ebb.steps WHERE state = 'PARKED'`))
			s.until(func() (bool, string) {
				return strings.Contains(s.metrics(), `ebb_steps{destination="billing",state="parked"} 1`), "the parked step is not counted"
			})
			after := s.create() // what comes later finds everything in order, and the parked one is left alone
			s.completed(after, 1)
			s.sameCalls("1", sim.Billing, sim.Undo, c.tries)
			require.Equal(t, "COMPENSATING", s.saga("1").State, fmt.Sprint(s.states("1")))
			s.oracle()
		})
	}
}
