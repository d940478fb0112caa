package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Place is how far a partition's records are durable.
type Place struct {
	TopicID [16]byte
	Next    int64
}

// Config of a Reader.
type Config struct {
	// Brokers to begin with. Required.
	Brokers []string
	// Options are added to the client's, for TLS and SASL.
	Options []kgo.Opt
	// Group and Topics to read. Required.
	Group  string
	Topics []string
	// MaxPoll bounds the records of a poll. Zero means 500.
	MaxPoll int
	// Places reads how far records are durable. Required.
	Places func(ctx context.Context) (map[TopicPartition]Place, error)
	// First says where partitions begin that have no place yet; what is missing begins at the earliest record. Nil means earliest.
	First func(ctx context.Context) (map[TopicPartition]int64, error)
	// Take makes records durable, in their order, and returns nil once they are. Required.
	Take func(ctx context.Context, ids map[string][16]byte, records []*kgo.Record) error
	// Ready is asked before each poll and may wait, for back-pressure. Nil means always ready.
	Ready func(ctx context.Context) error
	// Retry is the first wait after a failed Take, doubled up to 5 s. Zero means 100 ms.
	Retry time.Duration
	// Logger for what an operator should know. Nil means none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxPoll == 0 {
		c.MaxPoll = 500
	}
	if c.Retry == 0 {
		c.Retry = 100 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.First == nil {
		c.First = func(context.Context) (map[TopicPartition]int64, error) { return nil, nil }
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) error { return nil }
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	for _, p := range []struct {
		bad  bool
		what string
	}{
		{len(c.Brokers) == 0, "Brokers is empty"},
		{c.Group == "", "Group is empty"},
		{len(c.Topics) == 0, "Topics is empty"},
		{c.Places == nil, "Places is nil"},
		{c.Take == nil, "Take is nil"},
	} {
		if p.bad {
			problems = append(problems, errors.New("intake: Config."+p.what))
		}
	}
	return errors.Join(problems...)
}

// Errors that end Run.
var (
	// ErrTopicRecreated says that a topic was deleted and made again: its offsets mean other records.
	ErrTopicRecreated = errors.New("the topic was deleted and made again")
	// ErrBeyondEnd says that a partition ends before the place up to which its records are durable.
	ErrBeyondEnd = errors.New("the topic ends before the place that was read")
)

// Reader reads for one group. Make it with New, then call Run once.
type Reader struct {
	cfg    Config
	client *kgo.Client
	admin  *kadm.Client
	stop   context.CancelCauseFunc

	mu  sync.Mutex
	ids map[string][16]byte
}

// New checks the configuration; it does not connect.
func New(cfg Config) (*Reader, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Reader{cfg: cfg.withDefaults(), ids: map[string][16]byte{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(r.cfg.Brokers...),
		kgo.ClientID("ebb"),
		kgo.ConsumerGroup(r.cfg.Group),
		kgo.ConsumeTopics(r.cfg.Topics...),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.BlockRebalanceOnPoll(),
		kgo.RebalanceTimeout(60 * time.Second),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(time.Second),
		kgo.AdjustFetchOffsetsFn(r.adjust),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.MetadataMinAge(250 * time.Millisecond),
	}
	client, err := kgo.NewClient(append(options, r.cfg.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client of %s: %w", r.cfg.Group, err)
	}
	r.client, r.admin = client, kadm.NewClient(client)
	return r, nil
}

// Run reads until ctx ends; then it leaves the group and returns nil. What ends it otherwise is returned.
func (r *Reader) Run(ctx context.Context) error {
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	defer r.client.CloseAllowingRebalance()
	for ctx.Err() == nil {
		if err := r.cfg.Ready(ctx); err != nil {
			break
		}
		r.poll(ctx)
		r.client.AllowRebalance()
	}
	r.commit(ctx)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// commit lets the group know how far we came, as far as that is possible: the journal knows anyway.
func (r *Reader) commit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := r.client.CommitMarkedOffsets(ctx); err != nil {
		r.cfg.Logger.DebugContext(ctx, "group offsets were not committed at the end", "group", r.cfg.Group, "error", err)
	}
}

// poll reads once and makes what came durable.
func (r *Reader) poll(ctx context.Context) {
	fetches := r.client.PollRecords(ctx, r.cfg.MaxPoll)
	if fetches.IsClientClosed() || ctx.Err() != nil {
		return
	}
	fetches.EachError(func(topic string, partition int32, err error) {
		r.cfg.Logger.WarnContext(ctx, "fetch failed", "group", r.cfg.Group, "topic", topic, "partition", partition, "error", err)
	})
	if records := fetches.Records(); len(records) > 0 && r.take(ctx, records) {
		r.client.MarkCommitRecords(records...)
	}
}

// take makes the records durable, however often that takes; it reports false when the reader was stopped before.
func (r *Reader) take(ctx context.Context, records []*kgo.Record) bool {
	wait := r.cfg.Retry
	for {
		err := r.cfg.Take(ctx, r.topicIDs(), records)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		r.cfg.Logger.WarnContext(ctx, "records were not taken in, trying again", "group", r.cfg.Group, "records", len(records),
			"wait", wait.String(), "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
		wait = min(2*wait, 5*time.Second)
	}
}

func (r *Reader) topicIDs() map[string][16]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids
}

// adjust decides where the assigned partitions begin.
func (r *Reader) adjust(ctx context.Context, assigned map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for {
		out, err := r.starts(ctx, assigned)
		switch {
		case err == nil:
			return out, nil
		case errors.Is(err, ErrTopicRecreated), errors.Is(err, ErrBeyondEnd):
			r.stop(err)
			return nil, err
		case ctx.Err() != nil:
			return nil, err
		}
		r.cfg.Logger.WarnContext(ctx, "cannot tell yet where to begin", "group", r.cfg.Group, "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(r.cfg.Retry):
		}
	}
}

func (r *Reader) starts(ctx context.Context, assigned map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	if err := r.learnTopics(ctx); err != nil {
		return nil, err
	}
	places, err := r.cfg.Places(ctx)
	if err != nil {
		return nil, err
	}
	first, err := r.cfg.First(ctx)
	if err != nil {
		return nil, err
	}
	ends, err := r.admin.ListEndOffsets(ctx, r.cfg.Topics...)
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	ids := r.topicIDs()
	out := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range assigned {
		out[topic] = map[int32]kgo.Offset{}
		for partition, committed := range partitions {
			p := TopicPartition{topic, partition}
			place, known := places[p]
			if known && place.TopicID != ids[topic] {
				return nil, fmt.Errorf("%w: %s; its records begin anew, so compare them with the journal and then run `ebb recover`", ErrTopicRecreated, topic)
			}
			start := startOf(place, known, committed.EpochOffset().Offset, first, p)
			end, ok := ends.Lookup(topic, partition)
			if ok && end.Err == nil && known && start > end.Offset {
				return nil, fmt.Errorf("%w: %s partition %d ends at %d, read up to %d; restore the topic or run `ebb recover`",
					ErrBeyondEnd, topic, partition, end.Offset, start)
			}
			out[topic][partition] = kgo.NewOffset().At(start).WithEpoch(-1)
		}
	}
	return out, nil
}

// startOf is the lower of the journal's and the group's offset, the one that exists, else the reader's first.
func startOf(place Place, known bool, committed int64, first map[TopicPartition]int64, p TopicPartition) int64 {
	switch {
	case known && committed >= 0:
		return min(place.Next, committed)
	case known:
		return place.Next
	case committed >= 0:
		return committed
	default:
		return first[p]
	}
}

func (r *Reader) learnTopics(ctx context.Context) error {
	topics, err := r.admin.ListTopics(ctx, r.cfg.Topics...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	ids := map[string][16]byte{}
	for name, t := range topics {
		if t.Err != nil {
			return fmt.Errorf("topic %s: %w; create it with `ebb topics apply`", name, t.Err)
		}
		ids[name] = t.ID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = ids
	return nil
}
