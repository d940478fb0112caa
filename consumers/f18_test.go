package consumers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/consumers"
)

// TestF18 is "calls longer than the group's patience": a call has nothing to do with the group. While calls are out for longer than a
// member may be silent, the member reads on, and stays the same.
func TestF18(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const stuck, orders = 5, 60
	b.world.on(func(ctx context.Context, c consumers.Call, _ int) consumers.Ended {
		if len(c.Aggregate.ID) == 1 && c.Aggregate.ID <= fmt.Sprint(stuck) {
			_ = b.world.held(ctx)
		}
		return b.world.yes(c)
	})
	session := time.Second
	run := b.start(func(c *consumers.Config) {
		c.Concurrency = 8
		c.KafkaOptions = append(c.KafkaOptions, kgo.SessionTimeout(session), kgo.RebalanceTimeout(session), kgo.HeartbeatInterval(session/5))
	})
	b.create(1, stuck)
	b.until(func() (bool, string) { n, _ := b.world.inFlight(); return n == stuck, fmt.Sprintf("%d out", n) })
	out := time.Now()
	members := b.members()
	require.Len(t, members, 1)
	next := int64(stuck + 1)
	b.until(func() (bool, string) {
		if next <= orders {
			b.create(next, next)
			next++
		}
		return next > orders && b.world.done() == orders-stuck && time.Since(out) > 3*session, fmt.Sprintf("%d done", b.world.done())
	})
	require.Equal(t, members, b.members(), "the member never left")
	b.world.open()
	b.awaitCompleted(orders)
	run.end()
	require.Equal(t, orders, b.world.count(), "each order is charged in one call")
}

// members are the ids of the group's members.
func (b *bundle) members() []string {
	b.t.Helper()
	groups, err := b.kafka.Admin.DescribeGroups(context.Background(), group)
	require.NoError(b.t, err)
	var out []string
	for _, m := range groups[group].Members {
		out = append(out, m.MemberID)
	}
	slices.Sort(out)
	return out
}
