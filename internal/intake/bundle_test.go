package intake_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/internal/testkit"
)

const (
	topic = "orders"
	group = "ebb.test"
)

// bundle is a cluster, and what stands in for the journal: places and records that survive readers.
type bundle struct {
	t       *testing.T
	brokers []string
	client  *kgo.Client
	admin   *kadm.Client
	logs    *testkit.Log

	mu     sync.Mutex
	places map[intake.TopicPartition]intake.Place
	taken  []*kgo.Record
	tries  int
	first  map[intake.TopicPartition]int64
	// fail is asked before records become durable; nil means that they do.
	fail func(try int) error
}

func setup(t *testing.T, partitions int32) *bundle {
	t.Helper()
	b := &bundle{t: t, brokers: testkit.Kafka(t, map[string]int32{topic: partitions}), logs: &testkit.Log{}, places: map[intake.TopicPartition]intake.Place{}}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.MetadataMinAge(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	b.client, b.admin = client, kadm.NewClient(client)
	return b
}

// produce writes n records to a partition.
func (b *bundle) produce(partition int32, n int) {
	b.t.Helper()
	for i := range n {
		r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte("k" + strconv.Itoa(i)), Value: []byte("v")}
		require.NoError(b.t, b.client.ProduceSync(b.t.Context(), r).FirstErr())
	}
}

func (b *bundle) config() intake.Config {
	return intake.Config{
		Brokers: b.brokers, Group: group, Topics: []string{topic}, Retry: time.Millisecond, Logger: slog.New(slog.NewTextHandler(b.logs, nil)),
		Options: []kgo.Opt{kgo.FetchMaxWait(50 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond), kgo.MetadataMaxAge(200 * time.Millisecond)},
		Places: func(context.Context) (map[intake.TopicPartition]intake.Place, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return maps.Clone(b.places), nil
		},
		First: func(context.Context) (map[intake.TopicPartition]int64, error) { return b.first, nil },
		Take:  b.take,
	}
}

func (b *bundle) take(_ context.Context, ids map[string][16]byte, records []*kgo.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if b.fail != nil {
		if err := b.fail(b.tries); err != nil {
			return err
		}
	}
	for _, r := range records {
		b.taken = append(b.taken, r)
		b.places[intake.TopicPartition{Topic: r.Topic, Partition: r.Partition}] = intake.Place{TopicID: ids[r.Topic], Next: r.Offset + 1}
	}
	return nil
}

// offsets are those of the records that were taken from a partition since the mark, in that order.
func (b *bundle) offsets(partition int32, mark int) []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []int64{}
	for _, r := range b.taken[mark:] {
		if r.Partition == partition {
			out = append(out, r.Offset)
		}
	}
	return out
}

func (b *bundle) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.taken)
}

func (b *bundle) awaitCount(n int) {
	b.t.Helper()
	testkit.Eventually(b.t, func() (bool, string) {
		got := b.count()
		return got >= n, fmt.Sprintf("%d records taken of %d", got, n)
	}, 0)
}

// running is a reader at work.
type running struct {
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

// start runs a reader until the test ends.
func (b *bundle) start(change ...func(*intake.Config)) *running {
	b.t.Helper()
	cfg := b.config()
	for _, f := range change {
		f(&cfg)
	}
	r, err := intake.New(cfg)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{t: b.t, stop: cancel, done: make(chan error, 1)}
	go func() {
		run.done <- r.Run(ctx)
		close(run.done)
	}()
	b.t.Cleanup(func() {
		cancel()
		_ = <-run.done
	})
	return run
}

// end stops the reader, which must be well.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	require.NoError(r.t, <-r.done)
}

// committed is the group's offset of a partition, -1 for none.
func (b *bundle) committed(partition int32) int64 {
	b.t.Helper()
	got, err := b.admin.FetchOffsets(b.t.Context(), group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return -1 // nobody has joined yet
	}
	require.NoError(b.t, err)
	if o, ok := got.Lookup(topic, partition); ok {
		return o.At
	}
	return -1
}

// commit sets the group's offset.
func (b *bundle) commit(partition int32, at int64) {
	b.t.Helper()
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1})
	require.NoError(b.t, b.admin.CommitAllOffsets(b.t.Context(), group, o))
}

// members is how many the group has.
func (b *bundle) members() int {
	b.t.Helper()
	got, err := b.admin.DescribeGroups(b.t.Context(), group)
	require.NoError(b.t, err)
	return len(got[group].Members)
}

// upTo is 0 … n-1 from a first number.
func upTo(from, n int64) []int64 {
	out := []int64{}
	for i := from; i < n; i++ {
		out = append(out, i)
	}
	return out
}

func (b *bundle) until(cond func() (bool, string)) {
	b.t.Helper()
	testkit.Eventually(b.t, cond, 0)
}
