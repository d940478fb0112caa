package field

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// asked is a billing API that does the work for every request, as far as we know, and can be asked what became of one.
func asked(d *file) {
	d.timeout, d.idempotent = "400ms", "false"
	d.lookup = `lookup: { url: "/api/billing/by-key/{idempotencyKey}", settle: 100ms,
  refused_when: { path: "$.status", op: eq, value: refused }, pending_when: { path: "$.status", op: eq, value: in_progress },
  found_when: { path: "$.status", op: eq, value: done } }`
}

// lookups counts those that did not tell.
func lookups(s *stack) int {
	n, err := strconv.Atoi(s.text(`SELECT count(*)::text FROM ebb.calls WHERE destination = 'billing' AND status = 503`))
	require.NoError(s.t, err)
	return n
}

// TestF02Lookup is F02 at a destination that must not be asked to do it again, but can be asked whether it has (G3).
func TestF02Lookup(t *testing.T) {
	t.Parallel()

	t.Run("done, and the reply is lost", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, asked), "")
		s.faults(sim.Fault{Destination: sim.Billing, Direction: sim.Do, Action: sim.Lose})
		id := s.create()
		s.await(id, "CONFIRMED")
		s.sameCalls(id, sim.Billing, sim.Do, 1)
		s.firstReplyIsKept(id)
		s.heal()
		s.cancel(id) // what the lookup brought is enough to undo it
		s.await(id, "CANCELLED")
		s.sameCalls(id, sim.Billing, sim.Undo, 1)
		s.oracle()
	})

	for name, c := range map[string]struct {
		fault sim.Fault
		calls int
	}{
		"it lands after all":       {sim.Fault{Action: sim.Hang, At: sim.HangBefore, Duration: sim.Duration(1800 * time.Millisecond)}, 1},
		"it was never done":        {sim.Fault{Action: sim.ReplyWith, Status: 500, Next: 1}, 2},
		"accepted, and never done": {sim.Fault{Action: sim.ReplyWith, Status: 202, Next: 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, chain().with(sim.Billing, asked), "")
			c.fault.Destination, c.fault.Direction = sim.Billing, sim.Do
			s.faults(c.fault)
			id := s.create()
			s.await(id, "CONFIRMED")
			s.sameCalls(id, sim.Billing, sim.Do, c.calls)
			require.Len(t, s.effects(id, sim.Billing, ""), 1)
			s.oracle()
		})
	}

	t.Run("the saga is unwound meanwhile", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, asked), "")
		s.faults(
			sim.Fault{Destination: sim.Billing, Direction: sim.Do, Action: sim.Lose},
			sim.Fault{ID: "blind", Destination: sim.Billing, Direction: sim.Lookup, Action: sim.ReplyWith, Status: 503},
		)
		id := s.create()
		s.until(func() (bool, string) { return lookups(s) > 0, "not looked up" })
		s.cancel(id)
		s.until(func() (bool, string) { return s.saga(id).State == "COMPENSATING", s.saga(id).State })
		before := lookups(s)
		s.until(func() (bool, string) { return lookups(s) > before, "not looked up again" })
		require.Empty(t, s.effects(id, sim.Shipping, sim.Undo), "what the charge depended on stays until the charge is known")
		s.remove("blind")
		s.await(id, "CANCELLED")
		s.sameCalls(id, sim.Billing, sim.Do, 1)
		s.sameCalls(id, sim.Billing, sim.Undo, 1)
		s.oracle()
	})
}
