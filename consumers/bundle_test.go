package consumers_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

// destination is the one that tests consume for.
const destination = "billing"

const group = "ebb." + destination

// bundle is a journal, a stream and a destination of one test.
type bundle struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *journal.Store
	kafka *stream.Stream
	world *world
	logs  *testkit.Log
}

func setup(t *testing.T, change ...func(*journal.Destination)) *bundle {
	t.Helper()
	return setupOn(t, 2, change...)
}

func setupOn(t *testing.T, partitions int32, change ...func(*journal.Destination)) *bundle {
	t.Helper()
	dsn := testkit.DB(t)
	require.NoError(t, journal.Migrate(t.Context(), dsn))
	b := &bundle{t: t, pool: testkit.Pool(t, dsn), kafka: stream.New(t, partitions), world: newWorld(), logs: &testkit.Log{}}
	store, err := journal.Open(journal.Config{Pool: b.pool, Encoder: b.kafka.Codec})
	require.NoError(t, err)
	b.store = store
	d := journal.Destination{
		Name: destination, Hash: "v1", Source: []byte("destination: billing"), EventTypes: []string{schemas.EventOrderCreated},
		Rules: saga.Rules{
			Idempotency: saga.Idempotent, MaxAttempts: 4, MaxUndoAttempts: 8,
			BackoffBase: 5 * time.Millisecond, BackoffMax: 20 * time.Millisecond, Patience: time.Hour,
		},
	}
	for _, f := range change {
		f(&d)
	}
	ends := func(context.Context) (map[journal.TopicPartition]int64, error) { return nil, nil }
	_, err = store.Apply(t.Context(), []journal.Destination{d}, ends, journal.FromEarliest, false)
	require.NoError(t, err)
	return b
}

func (b *bundle) config() consumers.Config {
	return consumers.Config{
		Destination: destination, Endpoint: b.world, Store: b.store, Decoder: b.kafka.Codec, Brokers: b.kafka.Brokers, Worker: "w1",
		KafkaOptions: []kgo.Opt{kgo.FetchMaxWait(50 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond)},
		Timeout:      10 * time.Second, ProbeEvery: 10 * time.Millisecond, ProbeMax: 40 * time.Millisecond, Scan: 200 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(b.logs, nil)),
	}
}

// running is a consumer at work.
type running struct {
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

// start runs a consumer until the test ends.
func (b *bundle) start(change ...func(*consumers.Config)) *running {
	b.t.Helper()
	cfg := b.config()
	for _, f := range change {
		f(&cfg)
	}
	c, err := consumers.New(cfg)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{b.t, cancel, make(chan error, 1)}
	go func() {
		run.done <- c.Run(ctx)
		close(run.done)
	}()
	b.t.Cleanup(func() {
		b.world.open()
		cancel()
		_ = <-run.done
	})
	return run
}

// end stops the consumer, which must be well.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	require.NoError(r.t, <-r.done)
}

// create writes OrderCreated of orders from … to.
func (b *bundle) create(from, to int64) {
	b.t.Helper()
	for n := from; n <= to; n++ {
		b.kafka.Created(n)
	}
}

// count asks for one number.
func (b *bundle) count(sql string, args ...any) int {
	b.t.Helper()
	var n int
	require.NoError(b.t, b.pool.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

// sagas counts sagas in a state.
func (b *bundle) sagas(state saga.State) int {
	b.t.Helper()
	return b.count("SELECT count(*) FROM ebb.sagas WHERE state = $1", state.String())
}

func (b *bundle) awaitCompleted(n int) {
	b.t.Helper()
	b.until(func() (bool, string) {
		got := b.sagas(saga.Completed)
		return got == n, fmt.Sprintf("%d sagas completed of %d", got, n)
	})
}

func (b *bundle) until(cond func() (bool, string)) {
	b.t.Helper()
	testkit.Eventually(b.t, cond, 0)
}

// step is a row that tests look at.
type step struct {
	State, Reason  string
	Attempt, Epoch int
	Maybe          bool
}

func (b *bundle) step(order int64) step {
	b.t.Helper()
	var s step
	err := b.pool.QueryRow(context.Background(), `SELECT state, reason, attempt, epoch, maybe FROM ebb.steps
		WHERE saga_id = $1 AND destination = $2 AND direction = 'do'`, stream.EventID(order), destination).Scan(&s.State, &s.Reason, &s.Attempt, &s.Epoch, &s.Maybe)
	require.NoError(b.t, err)
	return s
}

// next is the journal's offset of a partition of the order topic, -1 for none.
func (b *bundle) next(partition int32) int64 {
	b.t.Helper()
	got, err := b.store.Offsets(context.Background(), group)
	require.NoError(b.t, err)
	if at, ok := got[journal.TopicPartition{Topic: schemas.TopicOrder, Partition: partition}]; ok {
		return at.Next
	}
	return -1
}

// ends are the ends of the order topic's partitions.
func (b *bundle) ends() map[int32]int64 {
	b.t.Helper()
	got, err := b.kafka.Admin.ListEndOffsets(context.Background(), schemas.TopicOrder)
	require.NoError(b.t, err)
	out := map[int32]int64{}
	for p, o := range got[schemas.TopicOrder] {
		out[p] = o.Offset
	}
	return out
}

// world is a destination. Its answer to an attempt is decided by handle; without one everything succeeds.
type world struct {
	mu      sync.Mutex
	calls   []consumers.Call
	flying  int
	most    int
	effects map[string]int // by Idempotency-Key
	handle  func(ctx context.Context, c consumers.Call, nth int) consumers.Ended
	gate    chan struct{}
}

func newWorld() *world { return &world{effects: map[string]int{}, gate: make(chan struct{})} }

// Prepare implements consumers.Endpoint.
func (w *world) Prepare(_ context.Context, c journal.Candidate) journal.Prepared {
	return journal.Prepared{Content: []byte("charge " + c.Aggregate.ID)}
}

// Attempt implements consumers.Endpoint.
func (w *world) Attempt(ctx context.Context, c consumers.Call) consumers.Ended {
	w.mu.Lock()
	w.calls = append(w.calls, c)
	nth := len(w.calls)
	w.flying++
	w.most = max(w.most, w.flying)
	handle := w.handle
	w.mu.Unlock()
	if handle == nil {
		handle = func(context.Context, consumers.Call, int) consumers.Ended { return w.yes(c) }
	}
	end := handle(ctx, c, nth)
	end.Exchange.Started = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flying--
	return end
}

// yes has the effect, once per key.
func (w *world) yes(c consumers.Call) consumers.Ended {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[c.Key] = 1
	return consumers.Ended{
		Class: saga.ClassSucceeded, Revert: saga.RevertPinned, Undo: []byte("refund " + c.Aggregate.ID),
		Exchange: journal.Exchange{Sent: true, Status: 200, Body: []byte(`{"id":"ch-` + c.Aggregate.ID + `"}`)},
	}
}

func (w *world) on(handle func(ctx context.Context, c consumers.Call, nth int) consumers.Ended) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handle = handle
}

// held waits for open, or for the end of the attempt.
func (w *world) held(ctx context.Context) error {
	select {
	case <-w.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open lets everything go on that is held.
func (w *world) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.gate:
	default:
		close(w.gate)
	}
}

func (w *world) all() []consumers.Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]consumers.Call(nil), w.calls...)
}

func (w *world) count() int { return len(w.all()) }

// inFlight is how many attempts are out, and how many were at most.
func (w *world) inFlight() (now, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flying, w.most
}

func (w *world) done() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.effects)
}

// misconfigured is a 401, which is the destination's fault or ours, and nobody's order.
func misconfigured() consumers.Ended {
	return consumers.Ended{
		Class: saga.ClassMisconfigured, Reason: "status 401", Outage: true, Exchange: journal.Exchange{Sent: true, Status: 401},
	}
}

func orderKey(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// logged counts how often something was logged.
func (b *bundle) logged(text string) int { return strings.Count(b.logs.String(), text) }
