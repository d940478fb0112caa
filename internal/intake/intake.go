package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/failpoint"
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
	// Take makes records durable, in the order of each partition, and returns nil once they are, or a HeldError once all but some are.
	// Required.
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

// Reader reads for one group. Make it with New, then call Run once.
type Reader struct {
	cfg    Config
	client *kgo.Client
	stop   context.CancelCauseFunc

	mu    sync.Mutex
	admin *kadm.Client
	ids   map[string][16]byte // of the topics as they were at the newest assignment
	held  held
}

// maxWait bounds the wait between tries to take records in.
const maxWait = 5 * time.Second

// New checks the configuration; it does not connect.
func New(cfg Config) (*Reader, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Reader{cfg: cfg.withDefaults(), ids: map[string][16]byte{}, held: held{records: map[TopicPartition][]*kgo.Record{}}}
	if err := kgo.ValidateOpts(r.options()...); err != nil {
		return nil, fmt.Errorf("kafka client of %s: %w", r.cfg.Group, err)
	}
	return r, nil
}

func (r *Reader) options() []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(r.cfg.Brokers...),
		kgo.ClientID("ebb"),
		kgo.ConsumerGroup(r.cfg.Group),
		kgo.ConsumeTopics(r.cfg.Topics...),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.BlockRebalanceOnPoll(),
		kgo.RebalanceTimeout(30 * time.Second),
		// The partitions of a member that is gone wait for as long. One that was only slow loses nothing but them: what it has
		// sent is known by its claim.
		kgo.SessionTimeout(10 * time.Second),
		kgo.HeartbeatInterval(2 * time.Second),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(time.Second),
		kgo.AdjustFetchOffsetsFn(r.adjust),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.MetadataMinAge(250 * time.Millisecond),
	}, r.cfg.Options...)
}

// Run reads until ctx ends; then it leaves the group and returns nil. What ends it otherwise is returned.
func (r *Reader) Run(ctx context.Context) error {
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	if err := r.join(); err != nil {
		return err
	}
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

// takeOnce may be repeated even after it has taken the records: Take is idempotent.
func (r *Reader) takeOnce(ctx context.Context, records []*kgo.Record) error {
	if err := failpoint.HitIn("intake.before-take", r.cfg.Group); err != nil {
		return err
	}
	if err := r.cfg.Take(ctx, r.topicIDs(), records); err != nil {
		return err
	}
	return failpoint.HitIn("intake.after-take", r.cfg.Group)
}

// join makes the client, which joins its group at once: the lock keeps the first assignment waiting until both are there.
func (r *Reader) join() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	client, err := kgo.NewClient(r.options()...)
	if err != nil {
		return fmt.Errorf("kafka client of %s: %w", r.cfg.Group, err)
	}
	r.client, r.admin = client, kadm.NewClient(client)
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
	fetches := r.fetch(ctx)
	if fetches.IsClientClosed() || ctx.Err() != nil {
		return
	}
	r.report(ctx, fetches)
	if records := r.due(fetches.Records(), time.Now()); len(records) > 0 {
		r.take(ctx, records)
	}
}

// report tells of fetches that failed. One that fails at once would be asked again at once, so it is given a moment.
func (r *Reader) report(ctx context.Context, fetches kgo.Fetches) {
	failed := false
	fetches.EachError(func(topic string, partition int32, err error) {
		failed = true
		r.cfg.Logger.WarnContext(ctx, "fetch failed", "group", r.cfg.Group, "topic", topic, "partition", partition, "error", err)
		if errors.Is(err, kerr.UnknownTopicID) {
			r.compareTopics(ctx)
		}
	})
	if failed && ctx.Err() == nil && len(fetches.Records()) == 0 {
		sleep(ctx, r.cfg.Retry)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// take makes the records durable, however often that takes, unless the reader is stopped before; those that are held come again.
func (r *Reader) take(ctx context.Context, records []*kgo.Record) {
	wait := r.cfg.Retry
	for {
		err := r.takeOnce(ctx, records)
		var some *HeldError
		if err == nil || errors.As(err, &some) {
			r.hold(ctx, records, some)
			r.client.MarkCommitRecords(without(records, some)...)
			return
		}
		if ctx.Err() != nil {
			return
		}
		r.cfg.Logger.WarnContext(ctx, "records were not taken in, trying again", "group", r.cfg.Group, "records", len(records),
			"wait", wait.String(), "error", err)
		sleep(ctx, wait)
		wait = min(2*wait, maxWait)
	}
}

// without gives the records that are durable.
func without(records []*kgo.Record, err *HeldError) []*kgo.Record {
	if err == nil {
		return records
	}
	held := make(map[*kgo.Record]bool, len(err.Records))
	for _, rec := range err.Records {
		held[rec] = true
	}
	return slices.DeleteFunc(slices.Clone(records), func(rec *kgo.Record) bool { return held[rec] })
}
