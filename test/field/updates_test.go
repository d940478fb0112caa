package field

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestEveryStatusUpdateReachesItsDestination: with the shipped files, each change of an order's status is told to the customer in its
// own words, though one of the same type was told before; and reading all of it again tells nobody anything (G8, G11).
func TestEveryStatusUpdateReachesItsDestination(t *testing.T) {
	t.Parallel()
	files, err := filepath.Abs("../../consumers/destinations")
	require.NoError(t, err)
	s := &stack{t: t, sim: harness.StartSim(t), dir: files}
	s.ebb = harness.Start(t, harness.Options{Sim: s.sim, Destinations: files, Partitions: 2})
	s.orders = s.ebb.Orders()
	// The first is lost on its way back: the second comes while it is not settled.
	s.faults(sim.Fault{Destination: sim.Notifications, Direction: sim.Do, Attempt: 1, Next: 1, Action: sim.Lose})
	id := s.create()
	s.await(id, "CONFIRMED")
	for _, status := range []string{"SHIPPED", "DELIVERED"} {
		require.Equal(t, status, s.orders.SetStatus(harness.ClientKey(status, 1), id, status).Status)
	}
	s.until(func() (bool, string) {
		n := len(s.effects(id, sim.Notifications, sim.Do))
		return n == 2, fmt.Sprintf("%d notifications", n)
	})
	s.until(func() (bool, string) {
		open := s.text(`SELECT count(*)::text FROM ebb.sagas WHERE state <> 'COMPLETED'`)
		return open == "0", open + " sagas are open"
	})
	var told []string
	for _, c := range s.calls(id, sim.Notifications, sim.Do) {
		told = append(told, c.Target)
	}
	require.Equal(t, []string{
		"/api/notifications/shipping-confirmation", "/api/notifications/shipping-confirmation", "/api/notifications/review-request",
	}, told)
	harness.Oracle(t, s.ebb, s.sim)
	harness.Rerun(t, s.ebb, s.sim)
}
