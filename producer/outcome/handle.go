package outcome

import (
	"context"
	"errors"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/producer/order"
)

// laterTries bounds how often a value is decoded that may become readable.
const laterTries = 5

// typeHeader names the record header with the event type.
const typeHeader = "eventType"

// news is a record and what it says.
type news struct {
	record  *kgo.Record
	outcome order.Outcome
}

// handle brings the records into the database or the dead letters. It returns
// an error only when ctx ends first.
func (c *consumer) handle(ctx context.Context, records []*kgo.Record) error {
	batch := make([]news, 0, len(records))
	for _, record := range records {
		if skip := skipReason(record); skip != "" {
			c.cfg.Observe(skip, 1)
			continue
		}
		outcome, readable, err := c.decode(ctx, record)
		if err != nil {
			return err
		}
		if readable {
			batch = append(batch, news{record: record, outcome: outcome})
		}
	}
	return c.apply(ctx, batch)
}

// skipReason is empty for a record that has to be decoded.
func skipReason(record *kgo.Record) string {
	if record.Value == nil {
		return ObservedTombstone
	}
	// A type that is new to this version is no fault of the record. Without the
	// header the value itself decides. The last header of a name counts.
	eventType := ""
	for _, header := range record.Headers {
		if header.Key == typeHeader {
			eventType = string(header.Value)
		}
	}
	switch order.Trigger(eventType) {
	case "", order.SagaCompleted, order.SagaCompensated, order.SagaParked, order.SagaResumed:
		return ""
	}
	return ObservedOtherType
}

// decode returns readable false for a record that went to the dead letters.
func (c *consumer) decode(ctx context.Context, record *kgo.Record) (outcome order.Outcome, readable bool, err error) {
	tries := 0
	reason := ReasonUndecodable
	var fault error
	err = c.persist(ctx, "decode", func() (bool, error) {
		var unavailable *order.UnavailableError
		outcome, fault = c.cfg.Decoder.DecodeOutcome(ctx, record.Value)
		switch {
		case fault == nil:
			return true, nil
		case errors.As(fault, &unavailable), ctx.Err() != nil:
			return false, fault
		case errors.Is(fault, ErrLater):
			tries++
			reason = ReasonUnknownSchema
			return tries >= laterTries, fault
		default:
			reason = ReasonUndecodable
			return true, nil
		}
	})
	if ctx.Err() != nil {
		return outcome, false, ctx.Err()
	}
	if fault == nil {
		return outcome, true, err
	}
	return outcome, false, c.putAside(ctx, DeadLetter{Group: c.cfg.Group, Record: record, Reason: reason, Err: fault})
}

// apply stores the batch in one transaction. One outcome that can never be
// stored is found by halving.
func (c *consumer) apply(ctx context.Context, batch []news) error {
	if len(batch) == 0 {
		return nil
	}
	outcomes := make([]order.Outcome, len(batch))
	for i := range batch {
		outcomes[i] = batch[i].outcome
	}
	var (
		effects    []order.Effect
		unstorable *order.UnstorableError
	)
	err := c.persist(ctx, "apply outcomes", func() (bool, error) {
		var err error
		effects, err = c.cfg.Store.ApplyOutcomes(ctx, outcomes)
		return err == nil || errors.As(err, &unstorable), err
	})
	switch {
	case err == nil:
		c.report(ctx, batch, effects)
		return nil
	case unstorable == nil:
		return err
	case len(batch) == 1:
		return c.putAside(ctx, DeadLetter{Group: c.cfg.Group, Record: batch[0].record, Reason: ReasonUnstorable, Err: err})
	}
	middle := len(batch) / 2
	if err := c.apply(ctx, batch[:middle]); err != nil {
		return err
	}
	return c.apply(ctx, batch[middle:])
}

func (c *consumer) report(ctx context.Context, batch []news, effects []order.Effect) {
	for i, effect := range effects {
		c.cfg.Observe(string(effect), 1)
		c.log.DebugContext(ctx, "outcome consumer: outcome",
			slog.Int64("order_id", batch[i].outcome.OrderID), slog.String("saga_id", batch[i].outcome.SagaID),
			slog.String("kind", string(batch[i].outcome.Kind)), slog.Int64("revision", batch[i].outcome.Revision),
			slog.String("effect", string(effect)))
	}
}

// putAside returns once the record is in the dead letters, or ctx has ended.
func (c *consumer) putAside(ctx context.Context, letter DeadLetter) error {
	err := c.persist(ctx, "write dead letter", func() (bool, error) {
		err := c.cfg.DeadLetter(ctx, letter)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	c.cfg.Observe(ObservedDeadLetter, 1)
	c.log.ErrorContext(ctx, "outcome consumer: record put aside",
		slog.String("reason", letter.Reason), slog.Int("partition", int(letter.Record.Partition)),
		slog.Int64("offset", letter.Record.Offset), slog.Any("error", letter.Err))
	return nil
}
