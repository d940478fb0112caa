package compensator_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/compensator"
	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

const group = "ebb.compensator"

// bundle is a journal with the destinations stock and billing (after stock), and a stream. The test itself reads events and makes
// calls for them.
type bundle struct {
	t      *testing.T
	pool   *pgxpool.Pool
	store  *journal.Store
	kafka  *stream.Stream
	offset int64
}

func setup(t *testing.T) *bundle {
	t.Helper()
	dsn := testkit.DB(t)
	require.NoError(t, journal.Migrate(t.Context(), dsn))
	b := &bundle{t: t, pool: testkit.Pool(t, dsn), kafka: stream.New(t, 2)}
	store, err := journal.Open(journal.Config{Pool: b.pool, Encoder: b.kafka.Codec})
	require.NoError(t, err)
	b.store = store
	rules := saga.Rules{Idempotency: saga.Idempotent, MaxAttempts: 4, MaxUndoAttempts: 8}
	after := rules
	after.After = []string{"stock"}
	set := []journal.Destination{
		{Name: "stock", Hash: "s1", Source: []byte("stock"), EventTypes: []string{schemas.EventOrderCreated}, Rules: rules},
		{Name: "billing", Hash: "b1", Source: []byte("billing"), EventTypes: []string{schemas.EventOrderCreated}, Rules: after},
	}
	_, err = store.Apply(t.Context(), set, func(context.Context) (map[journal.TopicPartition]int64, error) { return nil, nil }, journal.FromEarliest, false)
	require.NoError(t, err)
	return b
}

// never is a time that no test waits for: the sweeper finds nothing.
const never = time.Hour

// start runs a compensator until the test ends. failingFor is when its sweeper helps out.
func (b *bundle) start(failingFor time.Duration, change ...func(*compensator.Config)) *running {
	b.t.Helper()
	cfg := compensator.Config{
		Store: b.store, Decoder: b.kafka.Codec, Brokers: b.kafka.Brokers, SweepEvery: 10 * time.Millisecond, FailingFor: failingFor,
		KafkaOptions: []kgo.Opt{kgo.FetchMaxWait(50 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond)},
		Logger:       slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err := compensator.New(cfg)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{b.t, cancel, make(chan error, 1)}
	go func() {
		run.done <- c.Run(ctx)
		close(run.done)
	}()
	b.t.Cleanup(func() {
		cancel()
		_ = <-run.done
	})
	return run
}

type running struct {
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

func (r *running) end() {
	r.t.Helper()
	r.stop()
	require.NoError(r.t, <-r.done)
}

// read takes an order's create event in, as the destination's reader does.
func (b *bundle) read(dest string, order int64) {
	b.t.Helper()
	b.offset++
	var id saga.ID
	id, err := saga.ParseID(stream.EventID(order))
	require.NoError(b.t, err)
	rec := journal.Record{
		Position: journal.Position{Topic: schemas.TopicOrder, Offset: b.offset},
		Event: &journal.Event{
			ID: id, Type: schemas.EventOrderCreated, Aggregate: key(order), Version: 1, Payload: []byte("{}"), Body: []byte("{}"),
		},
	}
	_, err = b.store.Ingest(b.t.Context(), journal.Intake{Reader: journal.Reader{Name: "ebb." + dest, Destination: dest}, Records: []journal.Record{rec}})
	require.NoError(b.t, err)
}

func key(order int64) journal.Key {
	return journal.Key{Type: schemas.AggregateOrder, ID: strconv.FormatInt(order, 10)}
}

// claim takes what is due at a destination, waiting for it.
func (b *bundle) claim(dest string) journal.Claimed {
	b.t.Helper()
	var got journal.Claimed
	testkit.Eventually(b.t, func() (bool, string) {
		batch, err := b.store.Claim(b.t.Context(), journal.ClaimRequest{
			Destination: dest, Worker: "w1", Limit: 1, Lease: time.Minute,
			Prepare: func(context.Context, journal.Candidate) journal.Prepared {
				return journal.Prepared{Content: []byte("do " + dest)}
			},
		})
		require.NoError(b.t, err)
		if len(batch.Claimed) > 0 {
			got = batch.Claimed[0]
		}
		return len(batch.Claimed) > 0, "nothing is due at " + dest
	}, 0)
	return got
}

// end stores how an attempt ended.
func (b *bundle) end(c journal.Claimed, class saga.Class) {
	b.t.Helper()
	m := journal.Recording{Claimed: c, Worker: "w1", Result: saga.Result{Class: class, Reason: "status 422"}, Exchange: journal.Exchange{Sent: true, Status: 200}}
	if class == saga.ClassSucceeded {
		m.Result.Reason, m.Result.Revert, m.Undo = "", saga.RevertPinned, []byte("undo "+c.Dest)
	}
	errs, err := b.store.Record(b.t.Context(), []journal.Recording{m})
	require.NoError(b.t, err)
	require.NoError(b.t, errs[0])
}

// do makes the next call of a destination, which must be in the direction.
func (b *bundle) do(dest string, dir saga.Direction, class saga.Class) {
	b.t.Helper()
	c := b.claim(dest)
	require.Equal(b.t, dir, c.Dir)
	b.end(c, class)
}

// refused is an order whose stock is held and whose billing was refused.
func (b *bundle) refused(order int64) {
	b.t.Helper()
	b.read("stock", order)
	b.read("billing", order)
	b.do("stock", saga.Do, saga.ClassSucceeded)
	b.do("billing", saga.Do, saga.ClassRefused)
	require.Equal(b.t, "FAILING", b.state(order))
}

// completed is an order of which both are done.
func (b *bundle) completed(order int64) {
	b.t.Helper()
	b.read("stock", order)
	b.read("billing", order)
	b.do("stock", saga.Do, saga.ClassSucceeded)
	b.do("billing", saga.Do, saga.ClassSucceeded)
	require.Equal(b.t, "COMPLETED", b.state(order))
}

// relay writes the CompensationRequested rows of the outbox to Kafka, so many times each, to both partitions in turn.
func (b *bundle) relay(times int) {
	b.t.Helper()
	rows, err := b.pool.Query(b.t.Context(), "SELECT id::text, aggregateid, payload, version FROM ebb.outbox WHERE type = 'CompensationRequested' ORDER BY id")
	require.NoError(b.t, err)
	var id, order string
	var payload []byte
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&id, &order, &payload, &version}, func() error {
		for n := range times {
			b.kafka.Write(&kgo.Record{
				Topic: schemas.TopicCompensation, Partition: int32(n % 2), Key: []byte(order), Value: append([]byte(nil), payload...),
				Headers: stream.Headers(id, schemas.EventCompensationRequested, version),
			})
		}
		return nil
	})
	require.NoError(b.t, err)
}

func (b *bundle) saga(order int64) journal.SagaView {
	b.t.Helper()
	list, err := b.store.SagasOf(context.Background(), key(order))
	require.NoError(b.t, err)
	if len(list) == 0 {
		return journal.SagaView{}
	}
	return list[0]
}

func (b *bundle) state(order int64) string { return b.saga(order).State }

// steps lists "stock do SUCCEEDED" and so on.
func (b *bundle) steps(order int64) []string {
	var out []string
	for _, s := range b.saga(order).Steps {
		out = append(out, s.Destination+" "+s.Direction+" "+s.State)
	}
	return out
}

func (b *bundle) await(order int64, state string) {
	b.t.Helper()
	testkit.Eventually(b.t, func() (bool, string) {
		v := b.saga(order)
		return v.State == state, fmt.Sprintf("order %d is %s, not %s", order, v.State, state)
	}, 0)
}

// taken waits until the compensator has taken in everything that is in its topics.
func (b *bundle) taken() {
	b.t.Helper()
	testkit.Eventually(b.t, func() (bool, string) {
		ends, err := b.kafka.Admin.ListEndOffsets(context.Background(), schemas.TopicOrder, schemas.TopicCompensation)
		require.NoError(b.t, err)
		places, err := b.store.Offsets(context.Background(), group)
		require.NoError(b.t, err)
		for topic, partitions := range ends {
			for p, end := range partitions {
				if at := places[journal.TopicPartition{Topic: topic, Partition: p}].Next; at < end.Offset {
					return false, fmt.Sprintf("%s/%d is at %d of %d", topic, p, at, end.Offset)
				}
			}
		}
		return true, ""
	}, 0)
}

func (b *bundle) count(sql string, args ...any) int {
	b.t.Helper()
	var n int
	require.NoError(b.t, b.pool.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}
