package consumers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// ends that are the destination's fault, not an order's.
var outages = map[string]func() consumers.Ended{
	"credential expired": misconfigured,
	"connection refused": func() consumers.Ended {
		return consumers.Ended{Class: saga.ClassNotSent, Reason: "connection refused", Outage: true}
	},
	"status 503": func() consumers.Ended {
		return consumers.Ended{Class: saga.ClassUnknown, Reason: "status 503", Outage: true, Exchange: journal.Exchange{Sent: true, Status: 503}}
	},
	"status 503, come back later": func() consumers.Ended {
		return consumers.Ended{Class: saga.ClassRetry, Reason: "status 503", RetryAfter: time.Millisecond, Outage: true,
			Exchange: journal.Exchange{Sent: true, Status: 503}}
	},
}

// G10: an outage in the middle of the traffic refuses nothing, parks nothing and charges nothing; it is probed, and then everything
// is done, once.
func TestG10OutageIsNotABusinessFailure(t *testing.T) {
	t.Parallel()
	for name, fault := range outages {
		run := func(t *testing.T, ahead time.Duration) {
			t.Parallel()
			b := setup(t)
			const orders, before, during = 30, 10, 90
			b.world.on(func(_ context.Context, c consumers.Call, nth int) consumers.Ended {
				if nth <= before || nth > before+during {
					return b.world.yes(c)
				}
				// The destination fails while it still answers what came before: those answers do not make the orders after them bad.
				b.until(func() (bool, string) {
					return b.count("SELECT count(*) FROM ebb.steps WHERE state = 'SUCCEEDED'") >= before, "the first orders are not done"
				})
				return fault()
			})
			run := b.start(func(c *consumers.Config) { c.Concurrency, c.Ahead = 8, ahead })
			b.create(1, orders)
			b.awaitCompleted(orders)
			run.end()
			require.Equal(t, orders, b.world.done())
			require.Zero(t, b.count("SELECT count(*) FROM ebb.steps WHERE state IN ('PARKED', 'REFUSED')"))
			require.Zero(t, b.count("SELECT count(*) FROM ebb.outbox WHERE type IN ('CompensationRequested', 'SagaParked', 'StepFailed')"))
			require.Equal(t, orders+during, b.world.count())
			require.Contains(t, b.logs.String(), "from=closed to=open")
			require.Contains(t, b.logs.String(), "from=open to=ramping")
		}
		t.Run(name, func(t *testing.T) { run(t, 0) })
		t.Run(name+", claimed ahead", func(t *testing.T) { run(t, time.Minute) })
	}
}

// While the breaker is open, one probe is out at a time, and never the same order twice in a row while others wait.
func TestOpenBreakerProbesOneAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const orders = 12
	b.world.on(func(context.Context, consumers.Call, int) consumers.Ended {
		return outages["status 503, come back later"]()
	})
	run := b.start(func(c *consumers.Config) { c.Concurrency = 4 })
	b.create(1, orders)
	b.until(func() (bool, string) { return b.world.count() > 20, fmt.Sprintf("%d calls", b.world.count()) })
	first := b.world.count()
	b.world.mu.Lock()
	b.world.most = 0
	b.world.mu.Unlock()
	b.until(func() (bool, string) { return b.world.count() > first+10, fmt.Sprintf("%d calls", b.world.count()) })
	_, most := b.world.inFlight()
	require.Equal(t, 1, most)
	probes := b.world.all()[first:]
	for i := range probes[1:] {
		require.NotEqual(t, probes[i].Saga, probes[i+1].Saga)
	}
	b.world.on(nil)
	b.awaitCompleted(orders)
	run.end()
	require.Zero(t, b.count("SELECT count(*) FROM ebb.steps WHERE attempt > 2"), "no probe is charged")
}

// A fault of one order while others pass is that order's: it is parked, or refused, and the rest goes on.
func TestOneOrderThatFailsWhileOthersPassIsTheOrdersProblem(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  func() consumers.Ended
		state  string
		reason string
	}{
		"misconfigured": {misconfigured, "PARKED", "misconfigured, while other sagas pass"},
		"retries":       {outages["status 503, come back later"], "REFUSED", "retries exhausted after 4 attempts"},
		"unknown":       {outages["status 503"], "RESOLVING", "status 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.world.on(func(_ context.Context, c consumers.Call, _ int) consumers.Ended {
				if c.Aggregate.ID == "1" {
					return tc.fault()
				}
				return b.world.yes(c)
			})
			b.start()
			b.create(1, 1)
			b.until(func() (bool, string) { return b.world.count() > 0, "not called" })
			for n := int64(2); ; n++ {
				b.create(n, n)
				b.until(func() (bool, string) { return b.world.done() == int(n-1), fmt.Sprintf("order %d", n) })
				if got := b.step(1); got.State == tc.state {
					require.Contains(t, got.Reason, tc.reason)
					break
				}
				require.Less(t, n, int64(500), "%+v", b.step(1))
			}
		})
	}
}
