package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

// Endpoint renders and makes the calls of one destination.
type Endpoint interface {
	// Prepare renders the request of a step's first attempt. It asks nobody: the aggregate is locked.
	Prepare(ctx context.Context, c journal.Candidate) journal.Prepared
	// Attempt makes one call, at most one request on the wire, and returns when nothing of it can happen here any more.
	Attempt(ctx context.Context, c Call) Ended
}

// Call is one attempt to be made.
type Call struct {
	journal.Claimed
	// Key is the Idempotency-Key of every attempt of the step (G4).
	Key string
	// Deadline is when, on the monotonic clock, the first byte must have left.
	Deadline time.Time
}

// Ended is how a call ended.
type Ended struct {
	Class      saga.Class
	Reason     string
	RetryAfter time.Duration
	// Revert and Undo are what undoing takes, for a success of a do step (G6).
	Revert saga.Revert
	Undo   []byte
	// SpecHash names the destination's version.
	SpecHash string
	// Outage says that the end is the destination's fault, for the breaker.
	Outage bool
	// HeldBack says that nothing was sent for a reason of this process: it is given back without charge.
	HeldBack bool
	Exchange journal.Exchange
}

// Decoder reads record values. What is wrong with the value itself is a *schemas.DecodeError, an id that nobody knows a
// *schemas.UnknownSchemaError: the record becomes a dead letter. Any other error is temporary, and holds the partition.
type Decoder interface {
	Decode(ctx context.Context, payload []byte) (schemas.Decoded, error)
}

// Config of a consumer.
type Config struct {
	// Destination is the name; its latest version must be applied. Required.
	Destination string
	// Endpoint makes the calls. Required.
	Endpoint Endpoint
	// Store is the journal. Required.
	Store *journal.Store
	// Decoder of record values. Required.
	Decoder Decoder
	// Brokers and KafkaOptions say how to reach Kafka. Brokers is required.
	Brokers      []string
	KafkaOptions []kgo.Opt
	// Group is the consumer group. Empty means "ebb." and the destination.
	Group string
	// Topics to read. Nil means the order topic.
	Topics []string
	// Records names the headers of the records. The zero value means those of the contract.
	Records Records
	// AggregateType of the events. Empty means "order".
	AggregateType string
	// Worker names this process in claims. Required.
	Worker string
	// Concurrency bounds calls in flight over all replicas of this consumer: each takes its part, a few seconds after others have come or
	// gone. Zero means 16.
	Concurrency int
	// Ahead lets as many steps be claimed beyond Concurrency, to wait here for a place, as the destination has lately taken in this time:
	// they can be claimed in the transactions that make them due. What waits when a process dies counts as sent: it is for destinations
	// where repeating is safe, and without a rate. Zero means none.
	Ahead time.Duration
	// RateEvery is the time between calls and RateBurst how many may start at once, over all replicas; zero means no limit.
	RateEvery time.Duration
	RateBurst int
	// Timeout is the longest a call takes. Zero means 30 s.
	Timeout time.Duration
	// LeaseMargin is how much longer than the timeout a claim is held. Zero means 3 s.
	LeaseMargin time.Duration
	// Batch is the most claims or results of one transaction. Zero means 256; 1 is allowed.
	Batch int
	// Linger is how long a result waits for others. Zero means 1 ms; negative means not at all.
	Linger time.Duration
	// Recorder stores results, shared with other consumers of the process; it must run for longer than they do. Nil means one of the
	// consumer's own, with Batch and Linger.
	Recorder *Recorder
	// Scan is how often the dispatcher looks without having been woken. Zero means 5 s.
	Scan time.Duration
	// Backlog is how many steps may be due before reading pauses. Zero means 10,000.
	Backlog int
	// Queue is how many steps may be queued behind others of their aggregates before reading pauses: an event's cost grows with those
	// that wait before it. Zero means 200.
	Queue int
	// BreakerAfter is how many results in a row open the breaker. Zero means 3.
	BreakerAfter int
	// ProbeEvery is the first wait between probes, doubled up to ProbeMax. Zero means 1 s and 30 s.
	ProbeEvery time.Duration
	ProbeMax   time.Duration
	// Grace is how long calls may go on after the stop. Zero means 10 s.
	Grace time.Duration
	// Metrics to report to. Nil means none.
	Metrics *Metrics
	// Logger for what an operator should know. Nil means none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	count := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	set(&c.Timeout, 30*time.Second)
	set(&c.LeaseMargin, 3*time.Second)
	set(&c.Linger, time.Millisecond)
	set(&c.Scan, 5*time.Second)
	set(&c.ProbeEvery, time.Second)
	set(&c.ProbeMax, 30*time.Second)
	set(&c.Grace, 10*time.Second)
	count(&c.Concurrency, 16)
	count(&c.Batch, 256)
	count(&c.Backlog, 10_000)
	count(&c.Queue, 200)
	count(&c.BreakerAfter, 3)
	c.Linger = max(c.Linger, 0)
	if c.Group == "" {
		c.Group = "ebb." + c.Destination
	}
	if c.Topics == nil {
		c.Topics = []string{schemas.TopicOrder}
	}
	if c.AggregateType == "" {
		c.AggregateType = schemas.AggregateOrder
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("destination", c.Destination)
	return c
}

func (c Config) validate() error {
	var problems []error
	for _, p := range []struct {
		bad  bool
		what string
	}{
		{c.Destination == "", "Destination is empty"},
		{c.Endpoint == nil, "Endpoint is nil"},
		{c.Store == nil, "Store is nil"},
		{c.Decoder == nil, "Decoder is nil"},
		{len(c.Brokers) == 0, "Brokers is empty"},
		{c.Worker == "", "Worker is empty"},
		{c.Concurrency < 0, "Concurrency is negative"},
		{c.Batch < 0, "Batch is negative"},
		{c.RateEvery < 0, "RateEvery is negative"},
		{c.Ahead < 0, "Ahead is negative"},
		{c.Timeout < 0, "Timeout is negative"},
		{c.LeaseMargin < 0, "LeaseMargin is negative"},
	} {
		if p.bad {
			problems = append(problems, errors.New("consumers: Config."+p.what))
		}
	}
	if err := c.Records.envelope().Validate(); err != nil {
		problems = append(problems, fmt.Errorf("consumers: Config.Records: %w", err))
	}
	return errors.Join(problems...)
}

// lease is how long a claim is held.
func (c Config) lease() time.Duration { return c.Timeout + c.LeaseMargin }
