package outcome_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/outcome"
)

func TestOutcomesReachTheOrders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var orders []order.Order
	for range 6 {
		orders = append(orders, b.create())
	}
	for i, o := range orders {
		kind := order.SagaCompleted
		if i%2 == 1 {
			kind = order.SagaCompensated
		}
		b.send(o, order.SagaParked, 1)
		b.send(o, order.SagaResumed, 2)
		b.send(o, kind, 3)
		b.send(o, order.SagaParked, 2)
	}
	b.start(b.config())
	for i, o := range orders {
		b.waitFor(o.ID, []order.Status{order.StatusConfirmed, order.StatusRejected}[i%2])
		got, err := b.store.Get(t.Context(), o.ID)
		require.NoError(t, err)
		require.Empty(t, got.Attention)
	}
	b.waitCommitted()
	b.waitSeen(string(order.Stale), 6)
}

func TestRestartBeginsWhereItStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.create(), b.create()
	b.send(first, order.SagaCompleted, 1)
	stop := b.start(b.config())
	b.waitFor(first.ID, order.StatusConfirmed)
	b.waitCommitted()
	stop()

	b.send(second, order.SagaCompleted, 1)
	stop = b.start(b.config())
	b.waitFor(second.ID, order.StatusConfirmed)
	b.waitCommitted()
	stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Equal(t, map[string]int{string(order.Applied): 2}, b.seen)
}

func TestNothingIsCommittedBeforeTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create()
	b.store.failWith(func([]order.Outcome) error { return &order.UnavailableError{Err: errors.New("down")} })
	b.send(o, order.SagaCompleted, 1)
	stop := b.start(b.config())
	b.waitSeen(outcome.ObservedRetry, 3)
	stop()
	committed, _ := b.offsets()
	require.Zero(t, committed)
	require.Equal(t, order.StatusPending, b.status(o.ID))

	b.store.failWith(nil)
	b.start(b.config())
	b.waitFor(o.ID, order.StatusConfirmed)
	b.waitCommitted()
}

func TestAnUnknownStoreErrorIsAnOutage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create()
	b.store.failWith(func([]order.Outcome) error { return errors.New("relation does not exist") })
	b.send(o, order.SagaCompleted, 1)
	b.start(b.config())
	b.waitSeen(outcome.ObservedRetry, 3)
	b.store.failWith(nil)
	b.waitFor(o.ID, order.StatusConfirmed)
	require.Empty(t, b.deadLetters())
}

func TestPoisonIsPutAsideAndThePartitionGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create()
	poison := b.produce(o.Number(), "SagaCompleted", []byte("not JSON"))
	b.send(o, order.SagaCompleted, 1)
	refusals := 0
	cfg := b.config()
	store := cfg.DeadLetter
	cfg.DeadLetter = func(ctx context.Context, letter outcome.DeadLetter) error {
		if refusals++; refusals <= 2 {
			return errors.New("dead letters are down")
		}
		return store(ctx, letter)
	}
	b.start(cfg)
	b.waitFor(o.ID, order.StatusConfirmed)
	b.waitCommitted()
	letters := b.deadLetters()
	require.Len(t, letters, 1)
	letter := letters[0]
	require.Equal(t, outcome.ReasonUndecodable, letter.Reason)
	require.Equal(t, group, letter.Group)
	require.Equal(t, poison.Partition, letter.Record.Partition)
	require.Equal(t, poison.Offset, letter.Record.Offset)
	require.Equal(t, "not JSON", string(letter.Record.Value))
	require.Error(t, letter.Err)
	b.waitSeen(outcome.ObservedDeadLetter, 1)
}

func TestARegistryOutageSkipsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create()
	b.decoder.failWith(func(string) error { return &order.UnavailableError{Err: errors.New("registry down")} })
	b.send(o, order.SagaCompleted, 1)
	b.start(b.config())
	b.waitSeen(outcome.ObservedRetry, 20)
	committed, _ := b.offsets()
	require.Zero(t, committed)
	b.decoder.failWith(nil)
	b.waitFor(o.ID, order.StatusConfirmed)
	b.waitCommitted()
	require.Empty(t, b.deadLetters())
}

func TestAnUnknownSchemaIsTriedAFewTimes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create()
	tries := 0
	b.decoder.failWith(func(value string) error {
		switch tries++; {
		case value == "never":
			return fmt.Errorf("%w: schema 7", outcome.ErrLater)
		case tries <= 2:
			return fmt.Errorf("%w: schema 8", outcome.ErrLater)
		}
		return nil
	})
	b.send(o, order.SagaCompleted, 1)
	b.produce(o.Number(), "SagaParked", []byte("never"))
	b.start(b.config())
	b.waitFor(o.ID, order.StatusConfirmed)
	b.waitCommitted()
	letters := b.deadLetters()
	require.Len(t, letters, 1)
	require.Equal(t, outcome.ReasonUnknownSchema, letters[0].Reason)
	require.ErrorIs(t, letters[0].Err, outcome.ErrLater)
}

func TestAnUnstorableOutcomeIsFoundByHalving(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var orders []order.Order
	for range 7 {
		orders = append(orders, b.create())
	}
	bad := orders[4]
	b.store.failWith(func(outcomes []order.Outcome) error {
		for _, o := range outcomes {
			if o.OrderID == bad.ID {
				return &order.UnstorableError{Err: errors.New("refused")}
			}
		}
		return nil
	})
	for _, o := range orders {
		b.send(o, order.SagaCompleted, 1)
	}
	b.start(b.config())
	for _, o := range orders {
		if o.ID != bad.ID {
			b.waitFor(o.ID, order.StatusConfirmed)
		}
	}
	b.waitCommitted()
	require.Equal(t, order.StatusPending, b.status(bad.ID))
	letters := b.deadLetters()
	require.Len(t, letters, 1)
	require.Equal(t, outcome.ReasonUnstorable, letters[0].Reason)
	require.Equal(t, bad.Number(), string(letters[0].Record.Key))
}

func TestRecordsOfNoMeaningAreSkipped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create()
	b.produce(o.Number(), "SagaCompleted", nil)
	b.produce(o.Number(), "SagaStarted", []byte("from a later version"))
	value, err := json.Marshal(order.Outcome{OrderID: 4711, SagaID: o.CreatedEvent, Kind: order.SagaCompleted, Revision: 1})
	require.NoError(t, err)
	b.produce("4711", "", value)
	b.send(o, order.SagaCompleted, 1)
	b.start(b.config())
	b.waitFor(o.ID, order.StatusConfirmed)
	b.waitCommitted()
	require.Empty(t, b.deadLetters())
	b.waitSeen(outcome.ObservedTombstone, 1)
	b.waitSeen(outcome.ObservedOtherType, 1)
	b.waitSeen(string(order.UnknownOrder), 1)
}

func TestAFailedCommitIsCoveredByTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	failed := make(chan struct{})
	var once sync.Once
	b.cluster.ControlKey(int16(kmsg.OffsetCommit), func(request kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() { close(failed) })
		response := request.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, t := range request.(*kmsg.OffsetCommitRequest).Topics {
			answer := kmsg.NewOffsetCommitResponseTopic()
			answer.Topic, answer.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				partition := kmsg.NewOffsetCommitResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, kerr.InvalidCommitOffsetSize.Code
				answer.Partitions = append(answer.Partitions, partition)
			}
			response.Topics = append(response.Topics, answer)
		}
		return response, nil, true
	})
	o := b.create()
	b.send(o, order.SagaParked, 1)
	b.start(b.config())
	<-failed
	b.send(o, order.SagaCompleted, 2)
	b.waitFor(o.ID, order.StatusConfirmed)
	b.waitCommitted()
}

func TestTwoConsumersShareTheTopic(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var orders []order.Order
	for range 30 {
		orders = append(orders, b.create())
	}
	stopFirst := b.start(b.config())
	for i, o := range orders {
		if i == 10 {
			b.start(b.config())
		}
		if i == 20 {
			stopFirst()
		}
		b.send(o, order.SagaCompleted, 1)
	}
	for _, o := range orders {
		b.waitFor(o.ID, order.StatusConfirmed)
	}
	b.waitCommitted()
	require.Empty(t, b.deadLetters())
}

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	err := outcome.Run(t.Context(), outcome.Config{Batch: -1, RetryMin: time.Minute, RetryMax: time.Second})
	for _, text := range []string{"Brokers", "Store", "Decoder", "DeadLetter", "Batch", "RetryMin"} {
		require.ErrorContains(t, err, text)
	}
}
