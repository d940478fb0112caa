package field

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// TestF04 is "a claim stuck in progress, or released while its owner still lives". G5: a result is accepted from the holder of the
// step's epoch only, except that a success is proof whoever brings it; G12.
func TestF04(t *testing.T) {
	t.Parallel()
	leased := func(d *file) { d.timeout = "3s" }

	t.Run("a killed with the claim held, b a slow call", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, leased), "")
		s.faults(sim.Fault{Destination: sim.Billing, Action: sim.Hang, At: sim.HangDuring, Next: 1})
		id := s.create()
		s.until(func() (bool, string) { return len(s.calls(id, sim.Billing, sim.Do)) == 1, "not called" })
		s.kill()
		lease := s.lease(id, sim.Billing)
		s.restart()
		s.completed(id, 2)
		require.True(t, s.calls(id, sim.Billing, sim.Do)[1].At.After(lease), "nobody takes a claim whose owner may live")

		// Leases are looked at by now. A lease is longer than its call, so a slow one is left alone.
		s.faults(sim.Fault{Destination: sim.Billing, Action: sim.Hang, At: sim.HangDuring, Duration: sim.Duration(1600 * time.Millisecond), Next: 1})
		slow := s.create()
		s.completed(slow, 1)
		require.EqualValues(t, 1, s.step(slow, sim.Billing, "do").Epoch)
		s.oracle()
	})

	for _, late := range []struct {
		name  string
		fault sim.Action
		class string
	}{
		{"c the owner was frozen, its success comes late", "", "SUCCEEDED"},
		{"c the owner was frozen, its failure comes late", sim.Lose, "UNKNOWN"},
	} {
		t.Run(late.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, chain().with(sim.Billing, leased), failpoints("consumers.after-reply.billing=pause@1"))
			other := s.second(sim.Billing)
			other.Pause() // so that the first instance gets the claim
			if late.fault != "" {
				s.faults(sim.Fault{Destination: sim.Billing, Action: late.fault, Attempt: 1})
			}
			id := s.create()
			s.ebb.WaitLine("failpoint consumers.after-reply.billing: pause") // how it ended is in its memory only
			s.ebb.Pause()
			other.Continue()
			s.until(func() (bool, string) {
				row := s.step(id, sim.Billing, "do")
				return row.State == "SUCCEEDED", row.State
			})
			settled := s.step(id, sim.Billing, "do")
			require.EqualValues(t, 2, settled.Epoch, "the takeover raised the fence")

			s.ebb.Continue()
			resume(s.ebb)
			const lateRow = `SELECT count(*)::text FROM ebb.calls WHERE destination = 'billing' AND epoch = 1 AND NOT settled
				AND error <> 'the lease of the worker ran out' AND class = $1 AND fenced = ($1 <> 'SUCCEEDED')`
			s.until(func() (bool, string) { return s.text(lateRow, late.class) == "1", "the late result has not come" })
			s.completed(id, 2)
			require.Equal(t, settled, s.step(id, sim.Billing, "do"))
			require.Equal(t, "1", s.text(`SELECT count(*)::text FROM ebb.steps WHERE destination = 'billing'`))
			require.Equal(t, "1", s.text(`SELECT count(*)::text FROM ebb.calls WHERE destination = 'billing' AND settled`))
			s.oracle()
		})
	}
}
