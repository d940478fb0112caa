package consumers

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/journal"
)

func (c *Consumer) positions(ctx context.Context) (map[intake.TopicPartition]intake.Place, error) {
	return intake.Places(ctx, c.cfg.Store, c.cfg.Group)
}

func (c *Consumer) first(ctx context.Context) (map[intake.TopicPartition]int64, error) {
	start, err := c.cfg.Store.StartOffsets(ctx, c.cfg.Destination)
	if err != nil {
		return nil, err
	}
	out := make(map[intake.TopicPartition]int64, len(start))
	for p, at := range start {
		out[intake.TopicPartition(p)] = at
	}
	return out, nil
}

// intakeSince is what was taken in since the backlog was last looked at; only the reading loop uses it.
type intakeSince struct {
	looked         time.Time
	events, queued int
}

// ready holds reading back while the destination has more to do than it should, so that lag stays visible in Kafka. It looks when
// enough was taken in to make a difference, and else seldom.
func (c *Consumer) ready(ctx context.Context) error {
	const often, seldom = 50 * time.Millisecond, 250 * time.Millisecond
	since := c.since
	if since.events <= c.cfg.Backlog/10 && since.queued <= c.cfg.Queue/2 && time.Since(since.looked) < seldom {
		return ctx.Err()
	}
	for {
		behind, err := c.behind(ctx, since.queued > 0)
		c.since = intakeSince{looked: time.Now()}
		if err != nil || !behind {
			return ctx.Err() // a database that is down shows when the records are to be taken in
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(often):
		}
	}
}

// behind tells whether the destination has more steps due, or more queued behind others, than it should take in.
func (c *Consumer) behind(ctx context.Context, queueing bool) (bool, error) {
	due, err := c.cfg.Store.Due(ctx, c.cfg.Destination, c.cfg.Backlog+1)
	if err != nil || due > c.cfg.Backlog || !queueing {
		return due > c.cfg.Backlog, err
	}
	queued, err := c.cfg.Store.Queued(ctx, c.cfg.Destination)
	return queued > c.cfg.Queue, err
}

// take makes a poll's records durable. A value that cannot be decoded now holds its partition, and no other.
func (c *Consumer) take(ctx context.Context, ids map[string][16]byte, records []*kgo.Record) error {
	list, given, held := c.readAll(ctx, records)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(given) > 0 {
		reader := journal.Reader{Name: c.cfg.Group, Destination: c.cfg.Destination, TopicIDs: ids}
		got, err := c.ingest(ctx, reader, list)
		if err != nil {
			return c.reading.note(err)
		}
		c.took(ctx, got, given)
	}
	_ = c.reading.note(nil)
	if held != nil {
		return held
	}
	return nil
}

// readAll reads records up to the first of each partition that cannot be decoded now; given are those that were read.
func (c *Consumer) readAll(ctx context.Context, records []*kgo.Record) (list []journal.Record, given []*kgo.Record, held *intake.HeldError) {
	went := map[intake.TopicPartition]error{}
	for _, r := range records {
		p := intake.TopicPartition{Topic: r.Topic, Partition: r.Partition}
		if went[p] == nil {
			rec, err := c.read(ctx, r)
			went[p] = err
			if err == nil {
				list, given = append(list, rec), append(given, r)
				continue
			}
			if held == nil {
				held = &intake.HeldError{Err: err}
			}
		}
		held.Records = append(held.Records, r)
	}
	c.reading.read(went)
	return list, given, held
}

// took reports what became of the records.
func (c *Consumer) took(ctx context.Context, got journal.Ingested, records []*kgo.Record) {
	c.since.events += got.Events
	c.since.queued += got.Queued
	c.cfg.Metrics.ingested(c.cfg.Destination, got, records)
	if got.DeadLetters > 0 {
		c.log.WarnContext(ctx, "records became dead letters", "count", got.DeadLetters)
	}
}

// ingest stores the records, and starts at once what is due at once.
func (c *Consumer) ingest(ctx context.Context, reader journal.Reader, list []journal.Record) (journal.Ingested, error) {
	places, _ := c.reserve(fromQueue, c.cfg.Batch)
	defer func() { c.flights.add(fromQueue, -places) }()
	started := time.Now()
	got, err := c.record.take(ctx, journal.Intake{Reader: reader, Records: list, Claim: c.claimRequest(places)})
	if err == nil {
		c.start(fromQueue, got.Claimed, started)
		places -= len(got.Claimed)
	}
	return got, err
}

// read turns a record into what the journal takes in. An error is nobody's fault and temporary: the registry is away. What is
// wrong with the record itself makes it a dead letter.
func (c *Consumer) read(ctx context.Context, r *kgo.Record) (journal.Record, error) {
	out := journal.Record{Position: journal.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}}
	if r.Value == nil {
		out.Skip = true
		return out, nil
	}
	event, fault := c.envelope(r)
	if fault == "" {
		decoded, wrong, err := c.decode(ctx, r.Value)
		if err != nil {
			return out, err
		}
		event.SchemaID, event.Body, fault = decoded.SchemaID, decoded.JSON, wrong
	}
	if fault != "" {
		out.DeadLetter = intake.DeadLetter(r, fault)
		return out, nil
	}
	out.Event = event
	return out, nil
}

// envelope reads key and headers; the text says what is wrong with them.
func (c *Consumer) envelope(r *kgo.Record) (*journal.Event, string) {
	m, fault := c.cfg.Records.envelope().Read(r)
	return &journal.Event{
		ID: m.ID, Type: m.Type, Aggregate: journal.Key{Type: c.cfg.AggregateType, ID: m.Key}, Version: m.Version,
		Payload: r.Value, TraceParent: m.TraceParent, CreatedAt: m.Time,
	}, fault
}
