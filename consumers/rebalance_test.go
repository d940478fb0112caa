package consumers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/schemas"
)

// Field case F19 in both ways of assignment, G5 and G12: calls in flight go on while partitions move; a worker whose lease ran out
// is overtaken under the same key, and its late result is the answer or is refused, never a second row.
func TestG05CallsInFlightOutliveARebalance(t *testing.T) {
	t.Parallel()
	for name, balancer := range map[string]kgo.GroupBalancer{"cooperative": kgo.CooperativeStickyBalancer(), "eager": kgo.RangeBalancer()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			// Of orders 1 to 5, the first attempt is out until the end: beyond its lease for 4 and 5.
			frozen := map[string]bool{"4": true, "5": true}
			b.world.on(func(ctx context.Context, c consumers.Call, _ int) consumers.Ended {
				if c.Epoch == 1 && c.Aggregate.ID <= "5" && len(c.Aggregate.ID) == 1 {
					_ = b.world.held(context.WithoutCancel(ctx))
				}
				return b.world.yes(c)
			})
			with := func(worker string) func(c *consumers.Config) {
				return func(c *consumers.Config) {
					c.Worker, c.Concurrency = worker, 5
					c.KafkaOptions = append(c.KafkaOptions, kgo.Balancers(balancer))
					c.Timeout, c.LeaseMargin = time.Minute, time.Minute // nobody expires on its own
				}
			}
			a := b.start(with("a"))
			b.create(1, 5)
			b.until(func() (bool, string) {
				now, _ := b.world.inFlight()
				return now == 5, fmt.Sprintf("%d in flight", now)
			})
			other := b.start(with("b"))
			b.until(func() (bool, string) { return b.kafka.Members(group) == 2, "not joined" })
			b.create(6, 30)
			b.awaitCompleted(25)
			_, err := b.pool.Exec(t.Context(), `UPDATE ebb.steps SET lease_until = clock_timestamp() - interval '1 s'
				WHERE state = 'CALLING' AND saga_id IN (SELECT id FROM ebb.sagas WHERE aggregate_id IN ('4', '5'))`)
			require.NoError(t, err)
			n, err := b.store.Expire(t.Context(), destination, 10)
			require.NoError(t, err)
			require.Equal(t, len(frozen), n)
			b.awaitCompleted(27) // taken over by whoever has places: a has none
			b.world.open()
			b.awaitCompleted(30)
			b.until(func() (bool, string) {
				n := b.count("SELECT count(*) FROM ebb.calls WHERE class = 'SUCCEEDED'")
				return n == 32, fmt.Sprintf("%d results", n)
			})
			a.end()
			other.end()

			require.Equal(t, 30, b.world.done())
			require.Equal(t, 32, b.world.count())
			require.Equal(t, 30, b.count("SELECT count(*) FROM ebb.steps"))
			require.Equal(t, 30, b.count("SELECT count(*) FROM ebb.calls WHERE settled"))
			require.Equal(t, 30, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'SagaCompleted'"))
			require.Equal(t, 30, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'StepSucceeded'"))
			for p, end := range b.ends() {
				require.Equal(t, end, b.next(p))
				require.LessOrEqual(t, b.kafka.Committed(group, schemas.TopicOrder, p), end)
			}
		})
	}
}
