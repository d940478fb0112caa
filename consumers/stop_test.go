package consumers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

// G10: a stop is nobody's failure. Calls get the grace to end; what is cut off is given back without charge, as sent or not as it
// was; nothing new begins; the group is left.
func TestG10StopInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entered := make(chan string, 3)
	b.world.on(func(ctx context.Context, c consumers.Call, _ int) consumers.Ended {
		entered <- c.Aggregate.ID
		switch c.Aggregate.ID {
		case "1": // ends within the grace
			if b.world.held(ctx) == nil {
				return b.world.yes(c)
			}
		case "2": // is out until it is cut off
			<-ctx.Done()
			return consumers.Ended{Class: saga.ClassUnknown, Reason: ctx.Err().Error(), Exchange: journal.Exchange{Sent: true}}
		default: // had not sent anything when it was cut off
			<-ctx.Done()
		}
		return consumers.Ended{Class: saga.ClassNotSent, Reason: ctx.Err().Error(), Outage: true}
	})
	run := b.start(func(c *consumers.Config) { c.Grace = 300 * time.Millisecond })
	b.create(1, 3)
	for range 3 {
		<-entered
	}
	run.stop()
	b.until(func() (bool, string) { return b.kafka.Members(group) == 0, "the group is not left at once" })
	b.create(4, 4) // after the stop nothing is read
	b.world.open()
	require.NoError(t, <-run.done)

	require.Equal(t, step{State: "SUCCEEDED", Attempt: 1, Epoch: 1}, b.step(1))
	require.Equal(t, step{State: "READY", Reason: "interrupted by shutdown", Epoch: 1, Maybe: true}, b.step(2))
	require.Equal(t, step{State: "READY", Reason: "interrupted by shutdown", Epoch: 1}, b.step(3))
	require.Equal(t, 3, b.count("SELECT count(*) FROM ebb.sagas"))
	require.Equal(t, 3, b.world.count())
	require.Zero(t, b.count("SELECT count(*) FROM ebb.outbox WHERE type <> ALL ('{StepSucceeded,SagaCompleted}')"))
	require.Zero(t, b.count("SELECT count(*) FROM ebb.steps WHERE state = 'CALLING'"))

	b.world.on(nil)
	run = b.start()
	b.awaitCompleted(4)
	run.end()
	keys := map[string]int{}
	for _, c := range b.world.all() {
		keys[c.Key]++
	}
	require.Len(t, keys, 4)
	require.Equal(t, 6, b.world.count())
}

// A step that waits for its next attempt is a row: the stop does not wait for it.
func TestStopDoesNotWaitForRetries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.on(func(context.Context, consumers.Call, int) consumers.Ended {
		return consumers.Ended{Class: saga.ClassRetry, Reason: "status 429", RetryAfter: 300 * time.Hour, Exchange: journal.Exchange{Sent: true, Status: 429}}
	})
	run := b.start()
	b.create(1, 1)
	b.until(func() (bool, string) {
		return b.count("SELECT count(*) FROM ebb.steps WHERE state = 'READY' AND attempt = 1") == 1, "not tried"
	})
	run.end()
	require.Equal(t, 1, b.world.count())
	require.Equal(t, 1, b.step(1).Attempt)
}

// A database that is away at the stop must not keep the process for ever: what could not be stored is found by its lease.
func TestStopWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.start(func(c *consumers.Config) { c.Grace = 50 * time.Millisecond })
	b.create(1, 1)
	b.awaitCompleted(1)
	b.pool.Close()
	run.stop()
	require.NoError(t, <-run.done)
}

func TestDestinationThatIsNotAppliedIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := <-b.start(func(c *consumers.Config) { c.Destination = "biling" }).done
	require.ErrorIs(t, err, journal.ErrUnknownVersion)
	require.ErrorContains(t, err, "ebb config apply")
}

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := consumers.New(consumers.Config{Concurrency: -1, Batch: -1, RateEvery: -1, Timeout: -1, LeaseMargin: -1})
	for _, field := range []string{
		"Destination", "Endpoint", "Store", "Decoder", "Brokers", "Worker", "Concurrency", "Batch", "RateEvery", "Timeout", "LeaseMargin",
	} {
		require.ErrorContains(t, err, "Config."+field)
	}
}

// Batches of one are the same protocol.
func TestBatchOfOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.start(func(c *consumers.Config) { c.Batch, c.Linger = 1, -1 })
	b.create(1, 20)
	b.awaitCompleted(20)
	run.end()
	require.Equal(t, 20, b.world.count())
	require.Equal(t, 20, b.count("SELECT count(*) FROM ebb.calls WHERE settled"))
}

func TestConcurrencyBoundsCallsInFlight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.on(func(ctx context.Context, c consumers.Call, _ int) consumers.Ended {
		_ = b.world.held(ctx)
		return b.world.yes(c)
	})
	run := b.start(func(c *consumers.Config) { c.Concurrency = 3 })
	b.create(1, 12)
	b.until(func() (bool, string) {
		now, _ := b.world.inFlight()
		return now == 3, fmt.Sprintf("%d in flight", now)
	})
	b.until(func() (bool, string) { return b.count("SELECT count(*) FROM ebb.events") == 12, "not read" })
	b.world.open()
	b.awaitCompleted(12)
	run.end()
	_, most := b.world.inFlight()
	require.Equal(t, 3, most)
}

// The rate holds over both loops that claim: the bucket lets a burst go at once and one more each time `every` has passed; both loops
// may see the same burst at one moment, and then owe it.
func TestRateBoundsClaims(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const every, burst, orders = 10 * time.Millisecond, 4, 40
	run := b.start(func(c *consumers.Config) { c.RateEvery, c.RateBurst = every, burst })
	b.create(1, orders)
	b.awaitCompleted(orders)
	run.end()
	calls := b.world.all()
	slices.SortFunc(calls, func(x, y consumers.Call) int { return x.Deadline.Compare(y.Deadline) }) // claim order
	first, last := calls[0].Deadline, calls[orders-1].Deadline
	require.GreaterOrEqual(t, int(last.Sub(first)/every), orders-2*burst-1)
}

// G11: a step of a worker that is gone is taken over under the same key once its lease has run out, and counted as sent.
func TestG11LeaseOfADeadWorkerRunsOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.start()
	b.create(1, 1)
	b.awaitCompleted(1)
	run.end()
	// The next order is claimed by a worker that is never heard of again.
	records := []journal.Record{{
		Position: journal.Position{Topic: schemas.TopicOrder, Partition: 1, Offset: 1000},
		Event: &journal.Event{
			ID: saga.ID{15: 9}, Type: schemas.EventOrderCreated, Aggregate: journal.Key{Type: schemas.AggregateOrder, ID: "9"}, Version: 1,
			Payload: []byte("{}"), Body: []byte("{}"),
		},
	}}
	got, err := b.store.Ingest(t.Context(), journal.Intake{
		Reader: journal.Reader{Name: "other", Destination: destination}, Records: records,
		Claim: journal.ClaimRequest{Destination: destination, Worker: "dead", Limit: 1, Lease: 50 * time.Millisecond, Prepare: b.world.Prepare},
	})
	require.NoError(t, err)
	require.Len(t, got[0].Claimed, 1)
	run = b.start(func(c *consumers.Config) { c.Timeout, c.LeaseMargin = 100*time.Millisecond, 200*time.Millisecond })
	b.awaitCompleted(2)
	run.end()
	calls := b.world.all()
	last := calls[len(calls)-1]
	require.Equal(t, consumers.Key(got[0].Claimed[0]), last.Key)
	require.Equal(t, int64(2), last.Epoch)
	require.True(t, last.Maybe)
}
