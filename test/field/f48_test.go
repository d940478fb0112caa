package field

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestF48 is "a database transaction open across the HTTP call". G3, G12: no transaction is open during a call.
//
// The pool of `ebb up` has 24 connections for everything; four times as many calls are out at once.
func TestF48(t *testing.T) {
	t.Parallel()
	const out = 96
	s := &stack{t: t, sim: harness.StartSim(t)}
	files := flat().texts()
	files["billing.yaml"] += fmt.Sprintf("concurrency: %d\n", out)
	s.dir = harness.WriteDestinations(t, files)
	s.ebb = harness.Start(t, harness.Options{Sim: s.sim, Destinations: s.dir, Env: []string{"FIELD_TOKEN=" + canary}})
	s.orders = s.ebb.Orders()
	hang := s.sim.Add(sim.Fault{Destination: sim.Billing, Direction: sim.Do, Action: sim.Hang, At: sim.HangDuring, Duration: sim.Duration(4 * time.Second)})
	for range out {
		s.create()
	}
	calling := func() int {
		var n int
		require.NoError(t, s.ebb.DB().QueryRow(t.Context(), `SELECT count(*) FROM ebb.steps WHERE destination = 'billing' AND state = 'CALLING'`).Scan(&n))
		return n
	}
	most := 0
	s.until(func() (bool, string) {
		most = max(most, calling())
		return most >= 2*24, fmt.Sprintf("at most %d calls out", most)
	})

	// While they are out: nobody sits in a transaction, health and commands work, and other work goes on.
	open := map[string]int{} // by process and transaction, how often it was seen
	const looks = 30
	for range looks {
		rows, err := s.ebb.DB().Query(t.Context(), `SELECT pid || ' ' || xact_start || ' ' || left(query, 60) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'ebb' AND state LIKE 'idle in transaction%'
			AND state_change < clock_timestamp() - interval '100 ms'`)
		require.NoError(t, err)
		for rows.Next() {
			var who string
			require.NoError(t, rows.Scan(&who))
			open[who]++
		}
		require.NoError(t, rows.Err())
		for _, path := range []string{"/healthz", "/readyz"} {
			resp, err := http.Get(s.ebb.API() + path)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode, path)
		}
	}
	list, code := s.run("saga", "list", "--limit", "5")
	require.Zero(t, code, list)
	require.Contains(t, list, "RUNNING")
	late := s.create()
	s.until(func() (bool, string) {
		return len(s.effects(late, sim.Inventory, sim.Do)) == 1, "no other work goes on"
	})
	require.Positive(t, calling(), "the looks came too late")
	require.Empty(t, open)

	s.sim.Remove(hang...)
	s.confirmed(3)
	for key, n := range s.alike() {
		require.Equal(t, 1, n, key)
	}
	s.oracle()
}
