package consumers_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

// G2: at any moment, the group's offset is not above the journal's, and a record behind it is in the journal, however its call goes.
func TestG02OffsetIsNeverAheadOfTheJournal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const orders = 40
	b.world.on(func(ctx context.Context, c consumers.Call, _ int) consumers.Ended {
		if c.Aggregate.ID == "5" && b.world.held(ctx) != nil {
			return consumers.Ended{Class: saga.ClassUnknown, Reason: "interrupted"}
		}
		return b.world.yes(c)
	})
	run := b.start(func(c *consumers.Config) {
		c.KafkaOptions = append(c.KafkaOptions, kgo.AutoCommitInterval(100_000_000))
	})
	b.create(1, orders)
	ends := b.ends()
	b.until(func() (bool, string) {
		all := true
		for p, end := range ends {
			committed, next := b.kafka.Committed(group, schemas.TopicOrder, p), b.next(p)
			require.LessOrEqual(t, committed, next)
			all = all && committed == end
		}
		return all, "not committed"
	})
	// Everything is committed, and order 5 is still on its way: it is in the journal.
	b.awaitCompleted(orders - 1)
	require.Equal(t, "CALLING", b.step(5).State)
	require.Equal(t, orders, b.count("SELECT count(*) FROM ebb.events"))
	b.world.open()
	b.awaitCompleted(orders)
	run.end()
	require.Equal(t, orders, b.world.count())
}

// G2, G11: a group's offset that was reset, deleted or put ahead costs no call and skips no record.
func TestG11GroupThatWasMovedCostsNoCall(t *testing.T) {
	t.Parallel()
	move := func(b *bundle, at int64) {
		var o kadm.Offsets
		for p := range b.ends() {
			o.Add(kadm.Offset{Topic: schemas.TopicOrder, Partition: p, At: at, LeaderEpoch: -1})
		}
		require.NoError(b.t, b.kafka.Admin.CommitAllOffsets(b.t.Context(), group, o))
	}
	for name, change := range map[string]func(b *bundle, c *consumers.Config){
		"reset": func(b *bundle, _ *consumers.Config) { move(b, 0) },
		"ahead": func(b *bundle, _ *consumers.Config) { move(b, 1_000) },
		"deleted": func(b *bundle, _ *consumers.Config) {
			got, err := b.kafka.Admin.DeleteGroups(b.t.Context(), group)
			require.NoError(b.t, err)
			require.NoError(b.t, got.Error())
		},
		"mistyped": func(_ *bundle, c *consumers.Config) { c.Group = "ebb.biling" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			run := b.start()
			b.create(1, 10)
			b.awaitCompleted(10)
			run.end()
			run = b.start(func(c *consumers.Config) { change(b, c) })
			b.create(11, 13)
			b.awaitCompleted(13)
			run.end()
			require.Equal(t, 13, b.world.count())
			require.Equal(t, 13, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'SagaCompleted'"))
		})
	}
}

func TestG02TopicThatIsNotTheOneThatWasReadEndsRun(t *testing.T) {
	t.Parallel()
	t.Run("made again", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		run := b.start()
		b.create(1, 3)
		b.awaitCompleted(3)
		run.end()
		_, err := b.kafka.Admin.DeleteTopics(t.Context(), schemas.TopicOrder)
		require.NoError(t, err)
		b.kafka.Client.PurgeTopicsFromClient(schemas.TopicOrder)
		_, err = b.kafka.Admin.CreateTopic(t.Context(), 2, 1, nil, schemas.TopicOrder)
		require.NoError(t, err)
		err = <-b.start().done
		require.ErrorIs(t, err, intake.ErrTopicRecreated)
		require.ErrorContains(t, err, "ebb recover")
	})
	t.Run("shorter", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		run := b.start()
		b.create(1, 3)
		b.awaitCompleted(3)
		run.end()
		_, err := b.pool.Exec(t.Context(), "UPDATE ebb.offsets SET next_offset = 500")
		require.NoError(t, err)
		require.ErrorIs(t, <-b.start().done, intake.ErrBeyondEnd)
	})
}

// Field case F47: a registry that is away delays records and loses none; one that comes back needs no restart.
func TestG10RegistryOutageDelaysRecords(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"no answer": 0, "503": 503, "401": 401} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.kafka.Away(status)
			run := b.start(func(c *consumers.Config) { c.Decoder = b.kafka.NewCodec() })
			b.create(1, 3)
			b.until(func() (bool, string) { return b.kafka.Asked() > 3, "the registry was not asked" })
			require.Zero(t, b.count("SELECT count(*) FROM ebb.sagas"))
			require.Equal(t, int64(-1), b.next(0))
			b.kafka.Back()
			b.awaitCompleted(3)
			require.Zero(t, b.count("SELECT count(*) FROM ebb.dead_letters"))

			b.kafka.Away(status) // what is known already needs no registry
			b.create(4, 5)
			b.awaitCompleted(5)
			run.end()
			require.Equal(t, 5, b.world.count())
		})
	}
}

// A new schema id while the registry is away waits as well; one that the registry does not know is put aside after some tries.
func TestNewSchemaIDWaitsForTheRegistry(t *testing.T) {
	t.Parallel()
	b := setupOn(t, 1)
	run := b.start(func(c *consumers.Config) { c.Decoder = b.kafka.NewCodec() })
	b.create(1, 1)
	b.awaitCompleted(1)
	b.kafka.Away(503)
	asked := b.kafka.Asked()
	r := b.kafka.Record(stream.EventID(2), 1, schemas.OrderStatusUpdated{OrderID: 2, OldStatus: "A", NewStatus: "B", At: time.Now().UTC()}, 2)
	require.NotZero(t, binary.BigEndian.Uint32(r.Value[1:5]))
	b.kafka.Write(r)
	b.create(3, 3)
	b.until(func() (bool, string) { return b.kafka.Asked() > asked+2, "the registry was not asked" })
	require.Equal(t, 1, b.sagas(saga.Completed), "nothing overtakes it")
	require.Zero(t, b.count("SELECT count(*) FROM ebb.dead_letters"))
	b.kafka.Back()
	b.awaitCompleted(2)
	run.end()
	require.Zero(t, b.count("SELECT count(*) FROM ebb.dead_letters"))
	require.Equal(t, int64(3), b.next(0))
}

// Reading pauses while too much is due, so that lag stays visible in Kafka.
func TestBacklogHoldsReadingBack(t *testing.T) {
	t.Parallel()
	b := setupOn(t, 1)
	b.world.on(func(ctx context.Context, c consumers.Call, _ int) consumers.Ended {
		_ = b.world.held(ctx)
		return b.world.yes(c)
	})
	run := b.start(func(c *consumers.Config) { c.Concurrency, c.Backlog = 4, 3 })
	orders := int64(0)
	b.until(func() (bool, string) {
		orders++
		b.create(orders, orders)
		lag := orders - max(b.next(0), 0)
		return lag >= 50, fmt.Sprintf("%d orders, lag %d", orders, lag)
	})
	require.Equal(t, 1, b.kafka.Members(group), "who reads nothing is still a member")
	require.Zero(t, b.sagas(saga.Completed))
	b.world.open()
	b.awaitCompleted(int(orders))
	run.end()
	require.Equal(t, int(orders), b.world.count())
}

// A new schema id while the registry is away holds its own partition: what stands in others, with schemas that are known, goes on.
func TestNewSchemaIDHoldsItsPartitionAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cfg := b.config()
	cfg.Decoder = b.kafka.NewCodec()
	c, err := consumers.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	b.create(1, 1)
	b.awaitCompleted(1)
	require.NoError(t, c.Reading())

	b.kafka.Away(503)
	held := b.kafka.Record(stream.EventID(2), 1, schemas.OrderStatusUpdated{OrderID: 2, OldStatus: "A", NewStatus: "B", At: time.Now().UTC()}, 2)
	held.Partition = 1
	b.kafka.Write(held)
	b.until(func() (bool, string) { return c.Reading() != nil, "it is not held" })
	before := b.ends()
	b.create(3, 20) // by key, to either partition
	after := b.ends()
	require.Greater(t, after[0], before[0])
	require.Greater(t, after[1], before[1])
	b.awaitCompleted(1 + int(after[0]-before[0]))
	require.ErrorContains(t, c.Reading(), "waiting for the schema registry")
	require.Equal(t, after[0], b.next(0))
	require.Equal(t, before[1]-1, max(b.next(1), 0), "nothing overtakes it")
	require.Equal(t, 1, b.kafka.Members(group))

	b.kafka.Back()
	b.awaitCompleted(19)
	require.NoError(t, c.Reading())
	require.Zero(t, b.count("SELECT count(*) FROM ebb.dead_letters"))
	cancel()
	require.NoError(t, <-done)
	require.Equal(t, 19, b.world.count())
}
