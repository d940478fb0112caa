package handler_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/consumers/handler"
	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

// bundle is a journal and a stream of one test.
type bundle struct {
	t     *testing.T
	dsn   string
	pool  *pgxpool.Pool
	store *journal.Store
	kafka *stream.Stream
	logs  *testkit.Log
}

func setup(t *testing.T) *bundle {
	t.Helper()
	dsn := testkit.DB(t)
	require.NoError(t, journal.Migrate(t.Context(), dsn))
	b := &bundle{t: t, dsn: dsn, pool: testkit.Pool(t, dsn), kafka: stream.New(t, 1), logs: &testkit.Log{}}
	store, err := journal.Open(journal.Config{Pool: b.pool, Encoder: b.kafka.Codec})
	require.NoError(t, err)
	b.store = store
	return b
}

func (b *bundle) config() handler.Config {
	return handler.Config{
		DSN: b.dsn, Brokers: b.kafka.Brokers, Registry: []string{b.kafka.Registry()}, Scan: 100 * time.Millisecond, Grace: 5 * time.Second,
		KafkaOptions: []kgo.Opt{kgo.FetchMaxWait(50 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond)},
		Logger:       slog.New(slog.NewTextHandler(b.logs, nil)),
	}
}

// crm is a destination of OrderCreated that repeats quickly.
func crm(h handler.Handler) handler.Destination {
	return handler.Destination{
		Name: "crm", Handler: h, On: []string{schemas.EventOrderCreated}, Idempotency: handler.Idempotent, From: handler.FromEarliest,
		Retry: handler.Retry{Base: 5 * time.Millisecond, Max: 20 * time.Millisecond}, Timeout: 10 * time.Second,
	}
}

// running is a destination at work.
type running struct {
	t    *testing.T
	stop context.CancelFunc
	done chan error
	addr chan string
}

// start runs the destination until the test ends, at the latest.
func (b *bundle) start(d handler.Destination, change ...func(*handler.Config)) *running {
	b.t.Helper()
	run := &running{t: b.t, done: make(chan error, 1), addr: make(chan string, 1)}
	cfg := b.config()
	cfg.Listening = func(addr string) { run.addr <- addr }
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run.stop = cancel
	go func() {
		run.done <- handler.Run(ctx, cfg, d)
		close(run.done)
	}()
	b.t.Cleanup(func() {
		cancel()
		_ = <-run.done
	})
	return run
}

// end stops the destination and gives what Run returned.
func (r *running) end() error {
	r.stop()
	return <-r.done
}

// step is a row that tests look at.
type step struct {
	State, Reason, Revert string
	Attempt               int
	Maybe                 bool
}

func (b *bundle) step(order int64, dest, dir string) (s step) {
	b.t.Helper()
	_ = b.pool.QueryRow(context.Background(), `SELECT state, reason || outcome, revert, attempt, maybe FROM ebb.steps
		WHERE saga_id = $1 AND destination = $2 AND direction = $3`, stream.EventID(order), dest, dir).Scan(&s.State, &s.Reason, &s.Revert, &s.Attempt, &s.Maybe)
	return s
}

// await waits until the step is in the state, and gives it.
func (b *bundle) await(order int64, dir, state string) step {
	b.t.Helper()
	return b.awaitOf("crm", order, dir, state)
}

func (b *bundle) awaitOf(dest string, order int64, dir, state string) step {
	b.t.Helper()
	var got step
	testkit.Eventually(b.t, func() (bool, string) {
		got = b.step(order, dest, dir)
		return got.State == state, fmt.Sprintf("%s %s of order %d is %+v, not %s\n%s", dest, dir, order, got, state, b.logs)
	}, 0)
	return got
}

// sagaState waits for the saga's state.
func (b *bundle) awaitSaga(order int64, state saga.State) {
	b.t.Helper()
	testkit.Eventually(b.t, func() (bool, string) {
		var got string
		_ = b.pool.QueryRow(context.Background(), "SELECT state FROM ebb.sagas WHERE id = $1", stream.EventID(order)).Scan(&got)
		return got == state.String(), fmt.Sprintf("saga of order %d is %q, not %s", order, got, state)
	}, 0)
}

// unwind does the compensator's part for a saga that is FAILING.
func (b *bundle) unwind(order int64) {
	b.t.Helper()
	b.awaitSaga(order, saga.Failing)
	_, err := b.store.Sweep(context.Background(), 0, 100)
	require.NoError(b.t, err)
}

// registered waits until destinations are.
func (b *bundle) registered(names ...string) {
	b.t.Helper()
	for _, name := range names {
		testkit.Eventually(b.t, func() (bool, string) {
			_, err := b.store.Latest(context.Background(), name)
			return err == nil, fmt.Sprint(err)
		}, 0)
	}
}

// fake is a destination's handler that does what the test says and remembers what it was asked.
type fake struct {
	prepare func(handler.Step) (handler.Request, error)
	send    func(ctx context.Context, r handler.Request, nth int) (handler.Result, error)
	undo    func(ctx context.Context, r handler.Request, nth int) (handler.Result, error)

	mu    sync.Mutex
	sends []handler.Request
	undos []handler.Request
}

// Prepare implements handler.Handler.
func (f *fake) Prepare(_ context.Context, s handler.Step) (handler.Request, error) {
	if f.prepare != nil {
		return f.prepare(s)
	}
	return handler.Request{Body: []byte("deal " + s.AggregateID)}, nil
}

// Send implements handler.Handler.
func (f *fake) Send(ctx context.Context, r handler.Request) (handler.Result, error) {
	f.mu.Lock()
	f.sends = append(f.sends, r)
	nth := len(f.sends)
	f.mu.Unlock()
	if f.send != nil {
		return f.send(ctx, r, nth)
	}
	return done(r), nil
}

// Undo implements handler.Handler.
func (f *fake) Undo(ctx context.Context, r handler.Request) (handler.Result, error) {
	f.mu.Lock()
	f.undos = append(f.undos, r)
	nth := len(f.undos)
	f.mu.Unlock()
	if f.undo != nil {
		return f.undo(ctx, r, nth)
	}
	return handler.Result{Status: 204}, nil
}

func (f *fake) sent() []handler.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]handler.Request(nil), f.sends...)
}

func (f *fake) undone() []handler.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]handler.Request(nil), f.undos...)
}

// done is a success that can be undone.
func done(r handler.Request) handler.Result {
	return handler.Result{Status: 201, Reply: []byte(`{"id":"d-` + r.AggregateID + `"}`), Undo: []byte("drop d-" + r.AggregateID)}
}

// asked is a fake that can be looked up.
type asked struct {
	*fake
	lookup func(r handler.Request) (handler.Result, error)
}

// Lookup implements handler.Lookuper.
func (a asked) Lookup(_ context.Context, r handler.Request) (handler.Result, error) {
	return a.lookup(r)
}
