package field

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestF21 is "a deploy is not a business failure". G10.
func TestF21(t *testing.T) {
	t.Parallel()
	t.Run("SIGTERM with calls in flight", stopWithCallsInFlight)
	t.Run("a rolling restart under load", rollingRestart)
}

// stopWithCallsInFlight stops with three orders at billing: one that answers within the grace, one that does not, and one that waits
// for its Retry-After.
func stopWithCallsInFlight(t *testing.T) {
	t.Parallel()
	files := flat().texts()
	files["billing.yaml"] = strings.Replace(files["billing.yaml"], "retry_after: { cap: 50ms }", "retry_after: { cap: 10m }", 1)
	require.Contains(t, files["billing.yaml"], "cap: 10m")
	s := &stack{t: t, sim: harness.StartSim(t), dir: harness.WriteDestinations(t, files)}
	s.ebb = harness.Start(t, harness.Options{
		Sim: s.sim, Destinations: s.dir, Partitions: 1, Args: []string{"--grace", "2s"}, Env: []string{"FIELD_TOKEN=" + canary},
	})
	s.orders = s.ebb.Orders()
	quick, slow, waits := "1", "2", "3"
	s.faults(
		sim.Fault{ID: "quick", Destination: sim.Billing, Aggregate: quick, Action: sim.Hang, At: sim.HangDuring, Duration: sim.Duration(time.Second), Next: 1},
		sim.Fault{ID: "slow", Destination: sim.Billing, Aggregate: slow, Action: sim.Hang, At: sim.HangDuring, Next: 1},
		sim.Fault{ID: "waits", Destination: sim.Billing, Aggregate: waits, Action: sim.Unavailable, RetryAfter: 300, Next: 1},
	)
	s.create()
	require.Equal(t, slow, s.create())
	require.Equal(t, waits, s.create())
	s.until(func() (bool, string) {
		a, b, c := s.calls(quick, sim.Billing, sim.Do), s.calls(slow, sim.Billing, sim.Do), s.step(waits, sim.Billing, "do")
		return len(a) == 1 && len(b) == 1 && c.State == "READY" && c.Attempt == 1, fmt.Sprintf("%d and %d calls, %+v", len(a), len(b), c)
	})
	require.Zero(t, s.ebb.Stop())

	require.Equal(t, stepRow{State: "SUCCEEDED", Attempt: 1, Epoch: 1}, s.step(quick, sim.Billing, "do"), "it had the grace to end")
	require.Equal(t, stepRow{State: "READY", Maybe: true, Attempt: 0, Epoch: 1}, s.step(slow, sim.Billing, "do"), "it was cut off, and is not charged")
	require.Equal(t, stepRow{State: "READY", Attempt: 1, Epoch: 1}, s.step(waits, sim.Billing, "do"), "it waits in the journal, not in the process")
	require.Equal(t, "true", s.text(`SELECT (max(next_attempt_at) > clock_timestamp() + interval '1 min')::text FROM ebb.steps`), "nobody waited for it")
	require.Equal(t, "0", s.text(`SELECT count(*)::text FROM ebb.outbox WHERE type IN ('CompensationRequested', 'SagaParked', 'StepFailed')`))
	require.Equal(t, "0", s.text(`SELECT count(*)::text FROM ebb.steps WHERE state = 'CALLING'`))

	_, err := s.ebb.DB().Exec(t.Context(), `UPDATE ebb.steps SET next_attempt_at = clock_timestamp() WHERE state = 'READY'`)
	require.NoError(t, err)
	s.ebb.Restart()
	s.completed(quick, 1)
	s.completed(slow, 2)
	s.completed(waits, 2)
	s.oracle()
}

// rollingRestart restarts every process in turn while orders come in.
func rollingRestart(t *testing.T) {
	t.Parallel()
	a := startApart(t, flat(), 4)
	a.consumer(sim.Billing)
	a.awaitMembers(sim.Billing, 2)
	a.sim.Change(sim.Settings{Latency: map[string]sim.Latency{sim.Billing: {Min: 20 * time.Millisecond, Max: 60 * time.Millisecond}}})
	const orders = 100
	ids := make(chan string, orders)
	go func() {
		defer close(ids)
		for n := range orders {
			for { // the order service is restarted as well: what gets no answer is sent again under its key
				id, err := a.orders.CreateOnce(t.Context(), harness.ClientKey("rolling", n), harness.Order{})
				if err == nil {
					ids <- id
					break
				}
				select {
				case <-t.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
	}()
	restarted := map[string]bool{}
	created := []string{}
	next := a.all()
	for id := range ids {
		created = append(created, id)
		if len(created)%(orders/10) == 0 && len(next) > 0 {
			r := next[0]
			next = next[1:]
			require.Zero(t, r.Stop(), r.Name())
			r.Restart()
			restarted[r.Name()] = true
		}
	}
	for _, r := range next {
		require.Zero(t, r.Stop(), r.Name())
		r.Restart()
		restarted[r.Name()] = true
	}
	require.Len(t, restarted, 7) // producer, relay, compensator and four destinations
	a.n = orders
	require.Len(t, created, orders)
	a.confirmed(3)
	require.Len(t, a.alike(), 4*orders, "keys")
	require.Equal(t, "0", a.text(`SELECT count(*)::text FROM ebb.steps WHERE attempt > 1 OR direction = 'undo'`), "a restart is not charged")
	require.Equal(t, "0", a.text(`SELECT count(*)::text FROM ebb.outbox WHERE type NOT IN ('StepSucceeded', 'SagaCompleted')`))
	a.oracle()
}
