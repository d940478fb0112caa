package field

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// TestF01 is "reply lost, retry sent under a new key". G4: every attempt of a step carries one key and the same bytes, in whatever
// process it is made; G12: a kill between attempts loses and doubles nothing.
func TestF01(t *testing.T) {
	t.Parallel()
	lost := sim.Fault{Destination: sim.Billing, Direction: sim.Do, Attempt: 1, Action: sim.Lose}

	t.Run("c forward and refund", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), "")
		lostUndo := lost
		lostUndo.Direction = sim.Undo
		s.faults(lost, lostUndo)
		id := s.create()
		s.await(id, "CONFIRMED")
		s.cancel(id)
		s.await(id, "CANCELLED")

		charges := s.sameCalls(id, sim.Billing, sim.Do, 2)
		refunds := s.sameCalls(id, sim.Billing, sim.Undo, 2)
		require.NotEqual(t, charges[0].Key, refunds[0].Key)
		require.Len(t, s.effects(id, sim.Billing, sim.Do), 1)
		require.Len(t, s.effects(id, sim.Billing, sim.Undo), 1)
		s.firstReplyIsKept(id)
		s.oracle()
	})

	t.Run("a kill between the attempts", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), failpoints("journal.record.after-commit.billing=kill@1"))
		s.faults(lost)
		id := s.create()
		s.killed("journal.record.after-commit.billing")
		require.Equal(t, stepRow{State: "READY", Maybe: true, Attempt: 1, Epoch: 1}, s.step(id, sim.Billing, "do"))
		s.restart()
		s.await(id, "CONFIRMED")

		s.sameCalls(id, sim.Billing, sim.Do, 2)
		require.Len(t, s.effects(id, sim.Billing, sim.Do), 1)
		s.firstReplyIsKept(id)
		s.oracle()
	})

	t.Run("b second attempt by another instance", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), failpoints("journal.record.after-commit.billing=kill@1"))
		other := s.second(sim.Billing)
		other.Pause() // so that the first instance makes the first attempt
		s.faults(lost)
		id := s.create()
		s.killed("journal.record.after-commit.billing")
		other.Continue() // Kafka has died with the first instance: what was claimed or is due goes on without it
		s.until(func() (bool, string) {
			row := s.step(id, sim.Billing, "do")
			return row.State == "SUCCEEDED", row.State
		})
		workers := s.text(`SELECT count(DISTINCT worker)::text FROM ebb.calls WHERE destination = 'billing' AND class IN ('UNKNOWN', 'SUCCEEDED')`)
		require.Equal(t, "2", workers)
		s.restart()
		s.await(id, "CONFIRMED")

		s.sameCalls(id, sim.Billing, sim.Do, 2)
		require.Len(t, s.effects(id, sim.Billing, sim.Do), 1)
		s.firstReplyIsKept(id)
		s.oracle()
	})
}
