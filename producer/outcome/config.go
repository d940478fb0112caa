package outcome

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/producer/order"
)

// ErrLater marks a decoding error that may pass, such as a schema id that a
// lagging registry does not know yet. It is tried a few times more.
var ErrLater = errors.New("outcome: cannot be decoded yet")

// Decoder reads the value of a saga record.
type Decoder interface {
	// DecodeOutcome returns what the value says. An *order.UnavailableError means
	// that the registry cannot be asked now, ErrLater that the answer may change;
	// any other error that the value will never be readable.
	DecodeOutcome(ctx context.Context, value []byte) (order.Outcome, error)
}

// Store applies outcomes.
type Store interface {
	// ApplyOutcomes applies all or nothing and returns one effect per outcome. An
	// *order.UnstorableError means that one of them can never be stored; any
	// other error that it is worth trying again.
	ApplyOutcomes(ctx context.Context, outcomes []order.Outcome) ([]order.Effect, error)
}

// DeadLetter is a record that was put aside.
type DeadLetter struct {
	Group  string
	Record *kgo.Record
	Reason string // one of the Reason constants
	Err    error
}

// Reasons of a dead letter. They are constants, fit to group by.
const (
	ReasonUndecodable   = "undecodable"
	ReasonUnknownSchema = "unknown schema"
	ReasonUnstorable    = "unstorable"
)

// What Config.Observe is told. The effects of package order come on top.
const (
	ObservedTombstone  = "tombstone"   // record without a value, skipped
	ObservedOtherType  = "other_type"  // event type of no meaning here, skipped
	ObservedDeadLetter = "dead_letter" // record put aside
	ObservedRetry      = "retry"       // one more try because of an outage
)

// Config of Run.
type Config struct {
	// Brokers are Kafka addresses, host:port. Required.
	Brokers []string
	// Group is the consumer group. Empty: "ebb.producer".
	Group string
	// Topic is the saga topic. Empty: "outbox.event.saga".
	Topic string
	// Client adds options to the Kafka client, such as TLS and SASL.
	Client []kgo.Opt
	// Store, Decoder: required.
	Store   Store
	Decoder Decoder
	// DeadLetter stores a record that was put aside. It returns nil only when
	// the record is durable; an error is tried again. Required.
	DeadLetter func(ctx context.Context, letter DeadLetter) error
	// Batch is the largest number of records in one transaction. Zero: 500.
	Batch int
	// RetryMin and RetryMax bound the wait between two tries during an outage; it
	// doubles from one to the other. Zero: 200 ms and 10 s.
	RetryMin, RetryMax time.Duration
	// Observe counts what happens, with the constants of this package and the
	// effects of package order. It must not block. Nil: nothing is counted.
	Observe func(what string, n int)
	// Logger gets outages and dead letters. Nil: nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	var problems []error
	require := func(ok bool, text string) {
		if !ok {
			problems = append(problems, errors.New(text))
		}
	}
	require(len(c.Brokers) > 0, "missing Brokers")
	require(c.Store != nil, "missing Store")
	require(c.Decoder != nil, "missing Decoder")
	require(c.DeadLetter != nil, "missing DeadLetter")
	require(c.Batch >= 0, "negative Batch")
	if c.Group == "" {
		c.Group = "ebb.producer"
	}
	if c.Topic == "" {
		c.Topic = "outbox.event.saga"
	}
	if c.Batch == 0 {
		c.Batch = 500
	}
	if c.RetryMin == 0 {
		c.RetryMin = 200 * time.Millisecond
	}
	if c.RetryMax == 0 {
		c.RetryMax = max(10*time.Second, c.RetryMin)
	}
	require(c.RetryMin > 0 && c.RetryMin <= c.RetryMax, fmt.Sprintf("wrong RetryMin: %s is not between 0 and RetryMax %s", c.RetryMin, c.RetryMax))
	if c.Observe == nil {
		c.Observe = func(string, int) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(problems...); err != nil {
		return c, fmt.Errorf("outcome consumer: configuration: %w", err)
	}
	return c, nil
}
