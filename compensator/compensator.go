package compensator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

// Decoder reads our own event types.
type Decoder interface {
	DecodeMessage(ctx context.Context, payload []byte) (any, error)
}

// fresh is how young a request is whose saga may not be visible yet. An older one is passed over: the sweeper finds the saga.
const fresh = 2 * time.Second

// Config of a compensator.
type Config struct {
	// Store is the journal. Required.
	Store *journal.Store
	// Decoder of record values. Required.
	Decoder Decoder
	// Brokers and KafkaOptions say how to reach Kafka. Brokers is required.
	Brokers      []string
	KafkaOptions []kgo.Opt
	// Group is the consumer group. Empty means "ebb.compensator".
	Group string
	// SweepEvery is how often the sweeper looks. Zero means 1 s.
	SweepEvery time.Duration
	// FailingFor is how long a saga may be FAILING before the sweeper takes it. Zero means 5 s.
	FailingFor time.Duration
	// Logger for what an operator should know. Nil means none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Group == "" {
		c.Group = "ebb.compensator"
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = time.Second
	}
	if c.FailingFor == 0 {
		c.FailingFor = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	for _, p := range []struct {
		bad  bool
		what string
	}{
		{c.Store == nil, "Store is nil"},
		{c.Decoder == nil, "Decoder is nil"},
		{len(c.Brokers) == 0, "Brokers is empty"},
		{c.SweepEvery < 0, "SweepEvery is negative"},
		{c.FailingFor < 0, "FailingFor is negative"},
	} {
		if p.bad {
			problems = append(problems, errors.New("compensator: Config."+p.what))
		}
	}
	return errors.Join(problems...)
}

// Compensator begins unwindings. Make it with New, then call Run once.
type Compensator struct {
	cfg    Config
	reader *intake.Reader
}

// New checks the configuration; it does not connect.
func New(cfg Config) (*Compensator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Compensator{cfg: cfg.withDefaults()}
	reader, err := intake.New(intake.Config{
		Brokers: c.cfg.Brokers, Options: c.cfg.KafkaOptions, Group: c.cfg.Group, Logger: c.cfg.Logger,
		Topics: []string{schemas.TopicOrder, schemas.TopicCompensation},
		Places: func(ctx context.Context) (map[intake.TopicPartition]intake.Place, error) {
			return intake.Places(ctx, c.cfg.Store, c.cfg.Group)
		},
		Take: c.take,
	})
	c.reader = reader
	return c, err
}

// Run works until ctx ends and returns nil then, else what ended it.
func (c *Compensator) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var loops sync.WaitGroup
	loops.Go(func() { stop(c.reader.Run(ctx)) })
	loops.Go(func() { c.sweep(ctx) })
	loops.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// sweep looks for what no message has reached.
func (c *Compensator) sweep(ctx context.Context) {
	tick := time.NewTicker(c.cfg.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		got, err := c.cfg.Store.Sweep(ctx, c.cfg.FailingFor, 256)
		switch {
		case err != nil && ctx.Err() == nil:
			c.cfg.Logger.WarnContext(ctx, "sweep failed, trying again", "error", err)
		case got.Begun > 0 || got.Aged > 0:
			c.cfg.Logger.InfoContext(ctx, "sweep moved what no message had reached", "begun", got.Begun, "aged", got.Aged)
		}
	}
}

func (c *Compensator) take(ctx context.Context, ids map[string][16]byte, records []*kgo.Record) error {
	signals := make([]journal.Signal, len(records))
	for i, r := range records {
		var err error
		if signals[i], err = c.read(ctx, r); err != nil {
			return err
		}
	}
	return c.cfg.Store.Compensate(ctx, journal.Reader{Name: c.cfg.Group, TopicIDs: ids}, signals)
}

// read turns a record into a signal. Events that are neither cancels nor requests are passed over by their header, undecoded: other
// groups look after them.
func (c *Compensator) read(ctx context.Context, r *kgo.Record) (journal.Signal, error) {
	out := journal.Signal{Position: journal.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}}
	h := intake.Headers(r)
	eventType := h[schemas.HeaderEventType]
	isCancel := r.Topic == schemas.TopicOrder && c.cfg.Store.RoleOf(eventType) == saga.Cancelling
	if r.Value == nil || r.Topic == schemas.TopicOrder && !isCancel {
		out.Skip = true
		return out, nil
	}
	message, err := c.cfg.Decoder.DecodeMessage(ctx, r.Value)
	fault, temporary := classify(err)
	if temporary {
		return out, err
	}
	if fault == "" {
		fault = fill(&out, message, r, h, isCancel)
	}
	if fault != "" {
		out.DeadLetter = intake.DeadLetter(r, fault)
		c.cfg.Logger.WarnContext(ctx, "record became a dead letter", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "reason", fault)
	}
	return out, nil
}

// classify tells what is wrong with the record from what is temporary.
func classify(err error) (fault string, temporary bool) {
	var poison *schemas.DecodeError
	var unknown *schemas.UnknownSchemaError
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &poison), errors.As(err, &unknown):
		return err.Error(), false
	default:
		return "", true
	}
}

// fill reads the message into the signal; the text says what is wrong with it.
func fill(out *journal.Signal, message any, r *kgo.Record, h map[string]string, isCancel bool) string {
	switch m := message.(type) {
	case *schemas.CompensationRequested:
		id, err := saga.ParseID(m.SagaID)
		if err != nil {
			return "sagaId: " + err.Error()
		}
		out.Begin = &journal.Begin{Saga: id, Fresh: time.Since(r.Timestamp) < fresh}
	case *schemas.OrderCancelled:
		id, err := saga.ParseID(h[schemas.HeaderID])
		if err != nil {
			return "header id: " + err.Error()
		}
		out.Cancel = cancel(id, r, h, m)
	default:
		if isCancel {
			return fmt.Sprintf("a cancel event of type %T is not known", message)
		}
		out.Skip = true
	}
	return ""
}

func cancel(id saga.ID, r *kgo.Record, h map[string]string, m *schemas.OrderCancelled) *journal.Cancel {
	version := m.Version
	if v, err := strconv.ParseInt(h[schemas.HeaderAggregateVersion], 10, 64); err == nil {
		version = v
	}
	reason := "cancelled"
	if m.Reason != nil && *m.Reason != "" {
		reason = "cancelled: " + *m.Reason
	}
	return &journal.Cancel{
		Event: id, Aggregate: journal.Key{Type: schemas.AggregateOrder, ID: string(r.Key)}, Version: version, Reason: reason,
	}
}
