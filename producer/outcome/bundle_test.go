package outcome_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/outcome"
	"github.com/ebbline/ebb/producer/postgres"
)

const (
	topic = "outbox.event.saga"
	group = "ebb.producer"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		os.Exit(crashChild())
	}
	testkit.Main(m)
}

type encoder struct{}

func (encoder) EncodeCreated(context.Context, order.Created) ([]byte, error) { return []byte("x"), nil }

func (encoder) EncodeStatusUpdated(context.Context, order.StatusUpdated) ([]byte, error) {
	return []byte("x"), nil
}

func (encoder) EncodeCancelled(context.Context, order.Cancelled) ([]byte, error) {
	return []byte("x"), nil
}

// decoder reads JSON; values that are no JSON are poison.
type decoder struct {
	mu    sync.Mutex
	fault func(value string) error // nil result: decode
}

func (d *decoder) failWith(fault func(string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

func (d *decoder) DecodeOutcome(_ context.Context, value []byte) (out order.Outcome, err error) {
	d.mu.Lock()
	fault := d.fault
	d.mu.Unlock()
	if fault != nil {
		if err := fault(string(value)); err != nil {
			return out, err
		}
	}
	return out, json.Unmarshal(value, &out)
}

// gate is a store that can be told to fail before it reaches the real one.
type gate struct {
	*postgres.Store
	mu    sync.Mutex
	fault func([]order.Outcome) error
}

func (g *gate) failWith(fault func([]order.Outcome) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = fault
}

func (g *gate) ApplyOutcomes(ctx context.Context, outcomes []order.Outcome) ([]order.Effect, error) {
	g.mu.Lock()
	fault := g.fault
	g.mu.Unlock()
	if fault != nil {
		if err := fault(outcomes); err != nil {
			return nil, err
		}
	}
	return g.Store.ApplyOutcomes(ctx, outcomes)
}

type bundle struct {
	*testing.T
	cluster *kfake.Cluster
	client  *kgo.Client
	dsn     string
	store   *gate
	decoder *decoder

	mu      sync.Mutex
	seen    map[string]int
	letters []outcome.DeadLetter
}

func setup(t *testing.T) *bundle {
	t.Helper()
	dsn := testkit.DB(t)
	require.NoError(t, postgres.Migrate(t.Context(), dsn))
	store, err := postgres.New(postgres.Config{Pool: testkit.Pool(t, dsn), Encoder: encoder{}})
	require.NoError(t, err)
	cluster := testkit.KafkaCluster(t, map[string]int32{topic: 3})
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &bundle{T: t, cluster: cluster, client: client, dsn: dsn, store: &gate{Store: store}, decoder: &decoder{}, seen: map[string]int{}}
}

func (b *bundle) config() outcome.Config {
	return outcome.Config{
		Brokers: b.cluster.ListenAddrs(), Store: b.store, Decoder: b.decoder,
		RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond,
		Client: []kgo.Opt{kgo.MetadataMinAge(10 * time.Millisecond), kgo.FetchMaxWait(100 * time.Millisecond)},
		DeadLetter: func(_ context.Context, letter outcome.DeadLetter) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.letters = append(b.letters, letter)
			return nil
		},
		Observe: func(what string, n int) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.seen[what] += n
		},
	}
}

func (b *bundle) deadLetters() []outcome.DeadLetter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.letters)
}

// start runs the consumer; the returned function stops it and checks that it
// ended cleanly.
func (b *bundle) start(cfg outcome.Config) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- outcome.Run(ctx, cfg) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(b.T, <-done)
		})
	}
	b.Cleanup(stop)
	return stop
}

func (b *bundle) create() order.Order {
	b.Helper()
	amount, err := order.ParseAmount("5", 2)
	require.NoError(b.T, err)
	result, err := b.store.Create(b.Context(), order.New{CustomerID: "c", Amount: amount, Currency: "EUR", ShippingType: order.Domestic}, order.Request{})
	require.NoError(b.T, err)
	return result.Order
}

func (b *bundle) produce(key, eventType string, value []byte) *kgo.Record {
	b.Helper()
	record := &kgo.Record{Topic: topic, Key: []byte(key), Value: value}
	if eventType != "" {
		record.Headers = []kgo.RecordHeader{{Key: "eventType", Value: []byte(eventType)}}
	}
	require.NoError(b.T, b.client.ProduceSync(b.Context(), record).FirstErr())
	return record
}

func (b *bundle) send(o order.Order, kind order.Trigger, revision int64) *kgo.Record {
	b.Helper()
	value, err := json.Marshal(order.Outcome{OrderID: o.ID, SagaID: o.CreatedEvent, Kind: kind, Revision: revision, Reason: "because"})
	require.NoError(b.T, err)
	return b.produce(o.Number(), string(kind), value)
}

func (b *bundle) status(id int64) order.Status {
	o, err := b.store.Get(b.Context(), id)
	require.NoError(b.T, err)
	return o.Status
}

func (b *bundle) waitFor(id int64, want order.Status) {
	b.Helper()
	testkit.Eventually(b.T, func() (bool, string) {
		got := b.status(id)
		return got == want, fmt.Sprintf("order %d is %s", id, got)
	}, 0)
}

func (b *bundle) waitSeen(what string, n int) {
	b.Helper()
	testkit.Eventually(b.T, func() (bool, string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.seen[what] >= n, fmt.Sprint(b.seen)
	}, 0)
}

// waitCommitted waits until the group has nothing left to read.
func (b *bundle) waitCommitted() {
	b.Helper()
	testkit.Eventually(b.T, func() (bool, string) {
		committed, end := b.offsets()
		return committed == end, fmt.Sprintf("committed %d of %d", committed, end)
	}, 0)
}

// offsets sums the group's offsets and the topic's ends over all partitions.
func (b *bundle) offsets() (committed, end int64) {
	b.Helper()
	admin := kadm.NewClient(b.client)
	ends, err := admin.ListEndOffsets(b.Context(), topic)
	require.NoError(b.T, err)
	ends.Each(func(o kadm.ListedOffset) { end += o.Offset })
	fetched, err := admin.FetchOffsets(b.Context(), group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return 0, end // nobody has joined yet
	}
	require.NoError(b.T, err)
	fetched.Each(func(o kadm.OffsetResponse) { committed += max(0, o.At) })
	return committed, end
}
