package consumers_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// never is a scan that no test lives to see: what goes on has been woken.
func never(c *consumers.Config) { c.Scan = time.Hour }

// An attempt that has to wait is made when it is due, without a scan.
func TestNextAttemptIsMadeWhenItIsDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.on(func(_ context.Context, c consumers.Call, _ int) consumers.Ended {
		if c.Attempt < 4 {
			return consumers.Ended{Class: saga.ClassRetry, Reason: "status 429", RetryAfter: 30 * time.Millisecond, Exchange: journal.Exchange{Sent: true, Status: 429}}
		}
		return b.world.yes(c)
	})
	run := b.start(never)
	b.create(1, 3)
	b.awaitCompleted(3)
	run.end()
	require.Equal(t, 12, b.world.count())
}

// What another process makes due is heard of by NOTIFY, also when the connection that listens has been cut meanwhile, and is found by
// the scan where nobody listens.
func TestWorkOfAnotherProcessIsNotOverlooked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		listens, cut bool
		config       func(*consumers.Config)
	}{
		"heard":              {true, false, never},
		"listening was cut":  {true, true, never},
		"nobody listens":     {false, false, func(c *consumers.Config) { c.Scan = 20 * time.Millisecond }},
		"both, and the scan": {true, true, func(c *consumers.Config) { c.Scan = 20 * time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(d *journal.Destination) { d.Rules.OnRefused = saga.RefusalParks })
			other, err := journal.Open(journal.Config{Pool: b.pool, Encoder: b.kafka.Codec})
			require.NoError(t, err)
			if tc.listens {
				ctx, stop := context.WithCancel(context.Background())
				var both sync.WaitGroup
				both.Go(func() { b.store.Listen(ctx) })
				both.Go(func() { other.Listen(ctx) })
				t.Cleanup(func() { stop(); both.Wait() })
			}
			b.world.on(func(context.Context, consumers.Call, int) consumers.Ended {
				return consumers.Ended{Class: saga.ClassRefused, Reason: "status 422", Exchange: journal.Exchange{Sent: true, Status: 422}}
			})
			run := b.start(tc.config)
			b.create(1, 1)
			b.until(func() (bool, string) {
				return b.count("SELECT count(*) FROM ebb.steps WHERE state = 'PARKED'") == 1, "not parked"
			})
			b.world.on(nil)
			if tc.listens {
				const listening = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"
				b.until(func() (bool, string) { return b.count("SELECT count(*) "+listening) == 2, "not both listen" })
				if tc.cut {
					require.Equal(t, 2, b.count("SELECT count(pg_terminate_backend(pid)) "+listening))
				}
			}
			id, err := saga.ParseID(stream.EventID(1))
			require.NoError(t, err)
			require.NoError(t, other.Retry(t.Context(), id, destination, saga.Do, journal.Action{Who: "ops", Reason: "mended"}))
			b.awaitCompleted(1)
			run.end()
			require.Equal(t, 2, b.world.count())
		})
	}
}
