//go:build e2e

package e2e

import (
	"testing"

	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestG12KillEverythingAtOnce kills the whole pipeline, database included, at 20 moments in the middle of its work.
func TestG12KillEverythingAtOnce(t *testing.T) {
	const kills = 20
	chance, seed := seeded(t)
	s := world(t, seed)
	e := harness.Start(t, harness.Options{
		Sim: s, Embedded: true, Destinations: destinations(t, sim.Destinations()...), Env: []string{"E2E_TOKEN=" + canary},
	})
	clients := newCrowd(t, e.Orders(), 8)
	withDatabase, starting, takingOver := 0, 0, 0
	for n := range kills {
		clients.let(orderCount / (kills + 1))
		switch dice := chance.IntN(8); {
		case n > 0 && dice < 2:
			starting++
			e.WaitLine([]string{"PostgreSQL is ready", "msg=up", "relay: streaming"}[chance.IntN(3)])
		case n > 0 && dice < 4:
			takingOver++ // what the last run had claimed goes on under the same keys
			awaitTakeover(t, e)
			awaitCalls(t, s, 1+chance.IntN(30))
		default:
			e.AwaitReady()
			awaitCalls(t, s, 1+chance.IntN(150))
		}
		if chance.IntN(2) == 0 {
			withDatabase++
			e.KillWithPostgres()
		} else {
			e.Kill()
		}
		e.Launch()
	}
	e.AwaitReady()
	clients.finish()
	s.Heal()
	e.Orders().AwaitAllEnded(orderCount)
	t.Logf("seed %d: %d kills, %d of them with kill -9 of the database, %d while starting, %d while taking over", seed, kills, withDatabase,
		starting, takingOver)
	verdict(t, e, s)
	harness.Canary(t, e, canary)
	harness.Rerun(t, e, s)
	verdict(t, e, s)
}
