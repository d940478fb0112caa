package field

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// TestF13 is "LIFO order taken from clocks". G7: undo runs in the reverse of the recorded completion sequence, never of clocks.
//
// The steps do not depend on each other, so that only the sequence says what was done last. Between doing and undoing, every time
// that the journal holds of the order is made what wrong clocks would have made of it.
func TestF13(t *testing.T) {
	t.Parallel()
	// seq is the place of the step in the order in which the steps were done, from 1.
	for name, at := range map[string]string{
		"clocks of two instances 600 ms apart":   `now() + CASE WHEN seq % 2 = 0 THEN interval '300 ms' ELSE interval '-300 ms' END`,
		"the clock steps back between the steps": `now() - seq * interval '1 s'`,
		"three results at one moment":            `now()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, flat(), "")
			// Done in the order shipping, billing, inventory: neither by name, nor by plan, nor by when they were begun.
			s.faults(
				sim.Fault{Destination: sim.Inventory, Direction: sim.Do, Action: sim.Hang, At: sim.HangBefore, Duration: sim.Duration(1200 * time.Millisecond)},
				sim.Fault{Destination: sim.Billing, Direction: sim.Do, Action: sim.Hang, At: sim.HangBefore, Duration: sim.Duration(400 * time.Millisecond)},
			)
			id := s.create()
			s.await(id, "CONFIRMED")
			done := s.kinds(id)
			require.Len(t, done, 3)
			require.Equal(t, []sim.Kind{sim.Shipment, done[1], sim.StockHold}, done)

			for _, sql := range []string{
				`UPDATE ebb.steps SET created_at = ` + at + `, updated_at = ` + at + `, first_attempt_at = ` + at + `, first_sent_at = ` + at + ` WHERE seq > 0`,
				`UPDATE ebb.calls c SET started_at = t.created_at, recorded_at = t.created_at FROM ebb.steps t
					WHERE t.saga_id = c.saga_id AND t.destination = c.destination AND t.direction = c.direction`,
				`UPDATE ebb.requests r SET created_at = t.created_at FROM ebb.steps t WHERE t.saga_id = r.saga_id AND t.destination = r.destination`,
			} {
				_, err := s.ebb.DB().Exec(t.Context(), sql)
				require.NoError(t, err)
			}
			s.cancel(id)
			s.await(id, "CANCELLED")
			undone := map[sim.Kind]sim.Kind{sim.HighValue: sim.HighValueCancel, sim.Charge: sim.Refund}[done[1]]
			require.Equal(t, append(done, sim.StockRelease, undone, sim.ShipmentCancel), s.kinds(id))
			for _, d := range []string{sim.Inventory, sim.Billing, sim.Shipping} {
				s.sameCalls(id, d, sim.Undo, 1)
			}
			require.Empty(t, sim.CheckReverse(s.sim.Effects()))
			s.oracle()
		})
	}
}
