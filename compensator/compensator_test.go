package compensator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/compensator"
	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := compensator.New(compensator.Config{SweepEvery: -1, FailingFor: -1})
	for _, field := range []string{"Store", "Decoder", "Brokers", "SweepEvery", "FailingFor"} {
		require.ErrorContains(t, err, "Config."+field)
	}
}

// G11: however often the message comes, on whatever partition and to however many compensators, there is one unwinding.
func TestG11RequestThatComesManyTimesUnwindsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refused(1)
	b.start(never)
	b.start(never)
	b.relay(6)
	b.await(1, "COMPENSATING")
	b.taken()
	require.Equal(t, []string{"billing do REFUSED", "stock do SUCCEEDED", "stock undo READY"}, b.steps(1))
	b.do("stock", saga.Undo, saga.ClassSucceeded)
	b.await(1, "COMPENSATED")
	b.relay(4)
	b.taken()
	require.Equal(t, []string{"billing do REFUSED", "stock do SUCCEEDED", "stock undo SUCCEEDED"}, b.steps(1))
	require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'SagaCompensated'"))
	require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'StepUndone'"))
}

// G9: a message that never comes delays the unwinding, no more.
func TestG09LostRequestIsFoundByTheSweeper(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refused(1)
	b.start(time.Millisecond)
	b.await(1, "COMPENSATING")
	b.do("stock", saga.Undo, saga.ClassSucceeded)
	b.await(1, "COMPENSATED")
	b.relay(1) // and then it comes after all
	b.taken()
	require.Equal(t, "COMPENSATED", b.state(1))
	require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'SagaCompensated'"))
}

// The sweeper leaves alone what is not late: messages do the work.
func TestSweeperLeavesWhatIsNotLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refused(1)
	b.refused(2)
	_, err := b.pool.Exec(t.Context(), "UPDATE ebb.sagas SET failing_since = failing_since - interval '2 hours' WHERE aggregate_id = '2'")
	require.NoError(t, err)
	b.start(never)
	b.await(2, "COMPENSATING")
	require.Equal(t, "FAILING", b.state(1))
}

// A cancel before anybody has read the order leaves a tombstone: the order is never carried out.
func TestG09CancelBeforeTheOrderIsRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(never)
	b.kafka.Cancelled(stream.EventID(101), 1, 2)
	b.taken()
	require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.tombstones WHERE aggregate_id = '1' AND version = 2"))
	b.read("stock", 1)
	b.read("billing", 1)
	require.Equal(t, "COMPENSATED", b.state(1))
	require.Equal(t, []string{"billing do ABANDONED", "stock do ABANDONED"}, b.steps(1))
	require.Equal(t, "cancelled before it was read", b.saga(1).Reason)
}

// A cancel in the middle: what is out is awaited, what has not begun never does, what was done is undone.
func TestG07CancelWhileACallIsOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(never)
	b.read("stock", 1)
	b.read("billing", 1)
	b.do("stock", saga.Do, saga.ClassSucceeded)
	out := b.claim("billing")
	b.kafka.Cancelled(stream.EventID(101), 1, 2)
	b.await(1, "FAILING")
	b.relay(1)
	b.await(1, "COMPENSATING")
	require.Equal(t, []string{"billing do CALLING", "stock do SUCCEEDED", "stock undo WAITING"}, b.steps(1))
	b.end(out, saga.ClassSucceeded)
	require.Equal(t, []string{"billing do SUCCEEDED", "stock do SUCCEEDED", "stock undo WAITING", "billing undo READY"}, b.steps(1))
	b.do("billing", saga.Undo, saga.ClassSucceeded)
	b.do("stock", saga.Undo, saga.ClassSucceeded)
	b.await(1, "COMPENSATED")
	require.Equal(t, "cancelled: changed their mind", b.saga(1).Reason)
}

// G11: a cancel of a completed order unwinds it in reverse order; the same cancel again, and one after the end, are nothing.
func TestG11CancelThatComesTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.completed(1)
	b.start(never)
	for range 3 {
		b.kafka.Cancelled(stream.EventID(101), 1, 2)
	}
	b.await(1, "FAILING")
	b.relay(2)
	b.await(1, "COMPENSATING")
	b.kafka.Cancelled(stream.EventID(101), 1, 2)
	b.taken()
	b.do("billing", saga.Undo, saga.ClassSucceeded)
	b.do("stock", saga.Undo, saga.ClassSucceeded)
	b.await(1, "COMPENSATED")
	b.kafka.Cancelled(stream.EventID(101), 1, 2)
	b.relay(1)
	b.taken()
	require.Equal(t, "COMPENSATED", b.state(1))
	require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'CompensationRequested'"))
	require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'SagaCompensated'"))
	require.Equal(t, 2, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'StepUndone'"))
}

// Records that cannot be read are put aside and hold nothing back. Events that are no cancel are passed over undecoded: that they
// cannot be read is for others to say.
func TestPoisonHoldsNothingBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refused(1)
	h := stream.Headers(stream.EventID(50), schemas.EventCompensationRequested, 1)
	cancel := b.kafka.Record(stream.EventID(52), 2, schemas.OrderCancelled{OrderID: 9, Version: 2, At: time.Now().UTC()}, 9)
	list := []*kgo.Record{
		{Topic: schemas.TopicCompensation, Key: []byte("1"), Headers: h},                                                                               // null: skipped
		{Topic: schemas.TopicCompensation, Key: []byte("1"), Value: []byte("{"), Headers: h},                                                           // dead
		{Topic: schemas.TopicCompensation, Key: []byte("1"), Value: []byte{0, 0, 0, 0xff, 0xff, 1}, Headers: h},                                        // dead
		{Topic: schemas.TopicOrder, Key: []byte("1"), Value: []byte("{"), Headers: stream.Headers(stream.EventID(53), schemas.EventOrderCreated, 1)},   // skipped
		{Topic: schemas.TopicOrder, Key: []byte("1"), Value: []byte("{"), Headers: stream.Headers(stream.EventID(54), schemas.EventOrderCancelled, 1)}, // dead
		{Topic: schemas.TopicOrder, Key: cancel.Key, Value: cancel.Value, Headers: cancel.Headers[1:]},                                                 // dead: no id
		b.kafka.Record(stream.EventID(55), 1, schemas.CompensationRequested{ // of a saga that nobody knows: passed over
			SagaID: stream.EventID(4000), AggregateID: "4000", Destination: "billing", Class: "REFUSED", FailedAt: time.Now().UTC(),
		}, 4000),
	}
	b.kafka.Write(list...)
	b.relay(1)
	b.start(never)
	b.await(1, "COMPENSATING")
	b.taken()
	require.Equal(t, 4, b.count("SELECT count(*) FROM ebb.dead_letters WHERE reader = $1", group))
	require.Zero(t, b.count("SELECT count(*) FROM ebb.tombstones"))
	require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.sagas"))
}

// G10: a registry that is away delays requests and loses none.
func TestG10RegistryOutageDelaysRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refused(1)
	b.relay(1)
	b.kafka.Away(503)
	b.start(never, func(c *compensator.Config) { c.Decoder = b.kafka.NewCodec() })
	testkit.Eventually(t, func() (bool, string) { return b.kafka.Asked() > 2, "the registry was not asked" }, 0)
	require.Equal(t, "FAILING", b.state(1))
	b.kafka.Back()
	b.await(1, "COMPENSATING")
	b.taken()
	require.Zero(t, b.count("SELECT count(*) FROM ebb.dead_letters"))
}

// G2, G11: a group that was reset reads everything again, for nothing.
func TestG11TopicReadAgainUnwindsNothingAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refused(1)
	b.completed(2)
	b.kafka.Cancelled(stream.EventID(102), 2, 2)
	run := b.start(never)
	b.await(2, "FAILING")
	b.relay(1)
	b.await(1, "COMPENSATING")
	b.await(2, "COMPENSATING")
	b.do("billing", saga.Undo, saga.ClassSucceeded)
	b.do("stock", saga.Undo, saga.ClassSucceeded)
	b.do("stock", saga.Undo, saga.ClassSucceeded)
	b.taken()
	run.end()
	published := b.count("SELECT count(*) FROM ebb.outbox")

	_, err := b.kafka.Admin.DeleteGroups(t.Context(), group)
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), "DELETE FROM ebb.offsets WHERE reader = $1", group)
	require.NoError(t, err)
	run = b.start(never)
	b.taken()
	run.end()
	require.Equal(t, []string{"COMPENSATED", "COMPENSATED"}, []string{b.state(1), b.state(2)})
	require.Equal(t, published, b.count("SELECT count(*) FROM ebb.outbox"))
	require.Zero(t, b.count("SELECT count(*) FROM ebb.steps WHERE state IN ('READY', 'WAITING', 'CALLING')"))
}
