package kafkarun_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/kafkarun"
)

func startBroker(t *testing.T, dir string) *kafkarun.Broker {
	t.Helper()
	b, err := kafkarun.StartBroker(kafkarun.BrokerConfig{DataDir: dir, Logger: testLog(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func newKafka(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.MetadataMinAge(20 * time.Millisecond), kgo.FetchMaxWait(50 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func ensure(t *testing.T, addr string, specs ...kafkarun.TopicSpec) []kafkarun.TopicResult {
	t.Helper()
	results, err := kafkarun.EnsureTopics(t.Context(), []string{addr}, specs)
	require.NoError(t, err)
	return results
}

// readAll reads n records and counts each value.
func readAll(t *testing.T, addr, topic string, n int64) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := newKafka(t, addr, kgo.ConsumeTopics(topic))
	seen := map[string]int{}
	for total := int64(0); total < n; {
		fetches := c.PollFetches(ctx)
		require.NoError(t, fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++; total++ })
	}
	return seen
}

// endOffsets sums the end offsets of a topic: the number of its records.
func endOffsets(t *testing.T, addr, topic string) int64 {
	t.Helper()
	ends, err := kadm.NewClient(newKafka(t, addr)).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	var n int64
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

func TestBrokerSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := kafkarun.StartBroker(kafkarun.BrokerConfig{DataDir: dir, Sync: true, Logger: testLog(t)})
	require.NoError(t, err)
	ensure(t, first.Addr(), kafkarun.TopicSpec{Name: "a", Partitions: 3})
	c := newKafka(t, first.Addr())
	require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "id", Value: []byte("1")}}}).FirstErr())
	before, err := kadm.NewClient(c).ListTopics(t.Context(), "a")
	require.NoError(t, err)
	c.Close()
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "closing twice is fine")

	second := startBroker(t, dir)
	require.Equal(t, first.Addr(), second.Addr(), "the port is kept")
	require.Equal(t, map[string]int{"v": 1}, readAll(t, second.Addr(), "a", 1))
	after, err := kadm.NewClient(newKafka(t, second.Addr())).ListTopics(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, before["a"].ID, after["a"].ID, "it is the same topic, not a new one")
}

func TestBrokerSurvivesKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := startChild(t, "broker", dir)
	ensure(t, running.addr, kafkarun.TopicSpec{Name: "a", Partitions: 4})

	// Produce without a pause, kill once enough is acknowledged.
	c := newKafka(t, running.addr, kgo.ProducerLinger(0), kgo.RecordRetries(1), kgo.RecordDeliveryTimeout(2*time.Second))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	acked := map[string]bool{}
	enough := make(chan struct{})
	var producing sync.WaitGroup
	for worker := range 4 {
		producing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				value := strconv.Itoa(worker) + "-" + strconv.Itoa(i)
				if c.ProduceSync(ctx, &kgo.Record{Topic: "a", Key: []byte(value), Value: []byte(value)}).FirstErr() != nil {
					return
				}
				mu.Lock()
				acked[value] = true
				if len(acked) == 2000 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(time.Minute):
		t.Fatal("the broker did not acknowledge 2000 records")
	}
	running.kill()
	stop()
	c.Close() // what was sent and not acknowledged would be waited for
	producing.Wait()

	again := startBroker(t, dir)
	require.Equal(t, running.addr, again.Addr())
	seen := readAll(t, again.Addr(), "a", endOffsets(t, again.Addr(), "a"))
	for value := range acked {
		require.Equal(t, 1, seen[value], "record %s was acknowledged", value)
	}
	for value, n := range seen {
		require.Equal(t, 1, n, "record %s", value)
	}
	require.GreaterOrEqual(t, len(acked), 2000)
}

func TestBrokerPortTaken(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	_, err = kafkarun.StartBroker(kafkarun.BrokerConfig{DataDir: t.TempDir(), Addr: ln.Addr().String()})
	var taken *kafkarun.PortTakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, ln.Addr().String(), taken.Addr)

	// A kept port that somebody else took meanwhile is given up.
	dir := t.TempDir()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "port"), []byte(port), 0o600))
	b := startBroker(t, dir)
	require.NotEqual(t, ln.Addr().String(), b.Addr())
}

func TestBrokerDirectoryInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startBroker(t, dir)
	_, err := kafkarun.StartBroker(kafkarun.BrokerConfig{DataDir: dir})
	var inUse *kafkarun.InUseError
	require.ErrorAs(t, err, &inUse)
}

func TestConfigs(t *testing.T) {
	t.Parallel()
	_, err := kafkarun.StartBroker(kafkarun.BrokerConfig{Addr: "0.0.0.0:9092"})
	require.ErrorContains(t, err, "DataDir")
	require.ErrorContains(t, err, "loopback")
	_, err = kafkarun.StartRegistry(kafkarun.RegistryConfig{Addr: "8081", Compatibility: 99})
	require.ErrorContains(t, err, "Path")
	require.ErrorContains(t, err, "host:port")
	require.ErrorContains(t, err, "Compatibility")
}

func TestEnsureTopics(t *testing.T) {
	t.Parallel()
	b := startBroker(t, t.TempDir())
	spec := kafkarun.TopicSpec{Name: "a", Partitions: 3, ReplicationFactor: 1, Configs: map[string]string{"retention.ms": "3600000", "cleanup.policy": "delete"}}
	results := ensure(t, b.Addr(), spec, kafkarun.TopicSpec{Name: "b", Partitions: 1})
	require.Equal(t, []kafkarun.TopicResult{
		{Name: "a", Created: true, Partitions: 3, Wanted: 3}, {Name: "b", Created: true, Partitions: 1, Wanted: 1},
	}, results)

	results = ensure(t, b.Addr(), spec)
	require.Equal(t, []kafkarun.TopicResult{{Name: "a", Partitions: 3, Wanted: 3}}, results)
	require.Empty(t, results[0].Differences())

	changed := spec
	changed.Partitions, changed.Configs = 6, map[string]string{"retention.ms": "7", "cleanup.policy": "delete"}
	results = ensure(t, b.Addr(), changed)
	require.Equal(t, []kafkarun.TopicResult{{
		Name: "a", Partitions: 3, Wanted: 6, Configs: []kafkarun.ConfigResult{{Key: "retention.ms", Wanted: "7", Have: "3600000"}},
	}}, results)
	require.Len(t, results[0].Differences(), 2)
	require.Equal(t, int32(3), ensure(t, b.Addr(), changed)[0].Partitions, "still not changed")
}

func TestEnsureTopicsAtOnce(t *testing.T) {
	t.Parallel()
	b := startBroker(t, t.TempDir())
	specs := make([]kafkarun.TopicSpec, 8)
	for i := range specs {
		specs[i] = kafkarun.TopicSpec{Name: fmt.Sprintf("t%d", i), Partitions: 2}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	created := map[string]int{}
	errs := make(chan error, 4)
	for range cap(errs) {
		all.Go(func() {
			results, err := kafkarun.EnsureTopics(t.Context(), []string{b.Addr()}, specs)
			errs <- err
			mu.Lock()
			defer mu.Unlock()
			for _, r := range results {
				if r.Created {
					created[r.Name]++
				}
			}
		})
	}
	all.Wait()
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	for _, s := range specs {
		require.Equal(t, 1, created[s.Name], s.Name)
	}
}

func TestEnsureTopicsRefuses(t *testing.T) {
	t.Parallel()
	_, err := kafkarun.EnsureTopics(t.Context(), nil, []kafkarun.TopicSpec{{}, {Name: "a"}, {Name: "a", Partitions: 1}, {Name: "b", Partitions: 1, ReplicationFactor: -1}})
	for _, part := range []string{"no broker", "topic 1 has no name", "a: 0 partitions", "given twice", "negative"} {
		require.ErrorContains(t, err, part)
	}
	b := startBroker(t, t.TempDir())
	_, err = kafkarun.EnsureTopics(t.Context(), []string{b.Addr()}, []kafkarun.TopicSpec{{Name: "a", Partitions: 1, ReplicationFactor: 3}})
	require.ErrorContains(t, err, "fewer brokers")
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = kafkarun.EnsureTopics(soon, []string{"127.0.0.1:1"}, []kafkarun.TopicSpec{{Name: "a", Partitions: 1}})
	require.ErrorContains(t, err, "check the broker addresses")
	results, err := kafkarun.EnsureTopics(t.Context(), []string{b.Addr()}, nil)
	require.NoError(t, err)
	require.Empty(t, results)
}
