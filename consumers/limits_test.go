package consumers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers"
)

// Two replicas share the destination's places, and when one goes the other gets them all.
func TestConcurrencyIsSharedByReplicas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.on(func(ctx context.Context, c consumers.Call, _ int) consumers.Ended {
		_ = b.world.held(ctx)
		return b.world.yes(c)
	})
	replica := func(name string) func(*consumers.Config) {
		return func(c *consumers.Config) { c.Worker, c.Concurrency = name, 3 }
	}
	first := b.start(replica("w1"))
	b.until(func() (bool, string) {
		return b.count("SELECT count(*) FROM ebb.workers") == 1, "the first is not there"
	})
	second := b.start(replica("w2"))
	b.until(func() (bool, string) { return b.logged("replicas=2") >= 2, "they have not seen each other" })
	b.create(1, 12)
	b.until(func() (bool, string) {
		n, _ := b.world.inFlight()
		return n == 3 && b.count("SELECT count(*) FROM ebb.events") == 12, fmt.Sprintf("%d in flight", n)
	})
	b.world.open()
	b.awaitCompleted(12)
	_, most := b.world.inFlight()
	require.Equal(t, 3, most)
	second.end()
	b.until(func() (bool, string) { return b.logged("replicas=1 places=3") >= 1, "the first has not taken over" })
	first.end()
	require.Zero(t, b.count("SELECT count(*) FROM ebb.workers"))
}
