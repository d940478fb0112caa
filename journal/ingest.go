package journal

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ebbline/ebb/journal/saga"
)

// Record is a Kafka record as a reader takes it in. Exactly one of Event, DeadLetter and Skip is set.
type Record struct {
	Position
	// Event is what the record says.
	Event *Event
	// DeadLetter keeps a record that cannot be taken in.
	DeadLetter *DeadLetter
	// Skip passes over a record: a null value, or an event that is not for this reader.
	Skip bool
}

// Event is a decoded event.
type Event struct {
	ID        saga.ID
	Type      string
	Aggregate Key
	Version   int64
	// SchemaID and Payload are as on the wire; Body is the event as JSON with exact numbers.
	SchemaID    int
	Payload     []byte
	Body        []byte
	TraceParent string
	// CreatedAt is when the event was made, where its record says so. Zero: when it is taken in.
	CreatedAt time.Time
}

// DeadLetter is a record that could not be taken in, byte for byte.
type DeadLetter struct {
	Reason  string // short, the same for all records of one fault
	Detail  string
	Key     []byte
	Headers []Header
	Value   []byte
}

// Header is a record header.
type Header struct {
	Name  string
	Value []byte
}

// Reader names who reads: a consumer group's offsets in the journal.
type Reader struct {
	// Name of the group, for example "ebb.billing".
	Name string
	// Destination whose steps the reader moves; empty for readers without steps.
	Destination string
	// TopicIDs of the topics read: a topic that was made again is another topic.
	TopicIDs map[string][16]byte
}

// Ingested says what an Ingest took in.
type Ingested struct {
	Events      int // steps of the destination moved on or were known already
	Skipped     int // nulls, and events whose plan does not have the destination
	DeadLetters int
	// Queued are events that wait at the destination behind earlier ones of their aggregates.
	Queued int
	// Claimed are steps that were due at once and were claimed in the same transaction, and Settled those that needed no call.
	Claimed []Claimed
	Settled int
}

// errStale says that destinations were applied while records were on their way in: the plans were made without them.
var errStale = errors.New("destinations have changed")

// Intake is one reader's poll.
type Intake struct {
	Reader  Reader
	Records []Record
	// Claim asks for steps that are due at once and wait for no other destination, as far as its limit goes; a limit of zero claims
	// nothing.
	Claim ClaimRequest
}

// Ingest takes in polls of one or several readers in one transaction, each in offset order and with the offset behind its records
// (G2). Repeating it changes nothing (G11).
func (s *Store) Ingest(ctx context.Context, polls ...Intake) ([]Ingested, error) {
	for {
		got, err := s.ingest(ctx, polls)
		if !errors.Is(err, errStale) {
			return got, err
		}
		if err := s.refresh(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *Store) ingest(ctx context.Context, polls []Intake) ([]Ingested, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	defer conn.Release()
	revision := s.catalog.at()
	plans := make([][][]saga.Planned, len(polls))
	var needs []need
	for i, p := range polls {
		plans[i] = s.planAll(p)
		for j, rec := range p.Records {
			if planned(plans[i][j], p.Reader.Destination) {
				needs = append(needs, need{rec.Event.Aggregate, rec.Event.ID, rec.Event.Version})
			}
		}
	}
	u, err := s.begin(ctx, conn, needs, func(b *pgx.Batch) {
		b.Queue("SELECT pg_advisory_xact_lock_shared($1)", int64(configLock))
	})
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	if u.revision != revision {
		u.rollback(ctx)
		return nil, errStale
	}
	got := make([]Ingested, len(polls))
	for i, p := range polls {
		u.in(p.Reader.Destination)
		if err := u.takeAll(p, plans[i], &got[i]); err != nil {
			u.rollback(ctx)
			return nil, fmt.Errorf("ingest: %w", err)
		}
	}
	for i, p := range polls {
		u.claimFresh(ctx, p.Claim, p.Records, &got[i])
		u.rows.advance(p.Reader, p.Records)
	}
	if err := u.commit(ctx, "ingest"); err != nil {
		return nil, err
	}
	s.texts.keep(u.waiting)
	return got, nil
}

// planAll gives the plan of each record, nil where there is no event.
func (s *Store) planAll(p Intake) [][]saga.Planned {
	out := make([][]saga.Planned, len(p.Records))
	for i, rec := range p.Records {
		if rec.Event != nil {
			out[i] = s.catalog.plan(rec.Event.Type, rec.Position)
		}
	}
	return out
}

// takeAll applies one reader's records in their order.
func (u *unit) takeAll(p Intake, plans [][]saga.Planned, got *Ingested) error {
	for i, rec := range p.Records {
		switch {
		case rec.DeadLetter != nil:
			got.DeadLetters++
			u.rows.letter(p.Reader, rec)
		case planned(plans[i], p.Reader.Destination):
			got.Events++
			if err := u.take(p.Reader, rec, plans[i]); err != nil {
				return err
			}
			u.noteWaiting(p.Reader, rec.Event, got)
		default:
			got.Skipped++
		}
	}
	return nil
}

// noteWaiting keeps an event at hand whose step waits for what this process may be the one to record.
func (u *unit) noteWaiting(r Reader, e *Event, got *Ingested) {
	agg := u.aggs[e.Aggregate].agg
	if t := step(agg, e.ID, r.Destination, saga.Do); t == nil || t.State != saga.Waiting {
		return
	}
	u.waiting[e.ID] = eventText{e.Body, u.madeAt(e), e.TraceParent}
	if agg.Queues(e.ID, r.Destination) {
		got.Queued++
	}
}

// claimFresh claims steps that became READY by being read. What waited for another destination is left to Claim, which loads its
// reply.
func (u *unit) claimFresh(ctx context.Context, req ClaimRequest, records []Record, got *Ingested) {
	out := ClaimBatch{}
	for _, rec := range records {
		if len(out.Claimed) == req.Limit {
			break
		}
		if rec.Event == nil || u.aggs[rec.Event.Aggregate] == nil {
			continue
		}
		e := rec.Event
		t := step(u.aggs[e.Aggregate].agg, e.ID, req.Destination, saga.Do)
		if t == nil || t.State != saga.Ready || t.Epoch > 0 || len(t.Rules.After) > 0 {
			continue
		}
		u.claimedFor(req.Destination)
		u.claim(ctx, req, candidate{e.ID, saga.Do, e.Aggregate}, &material{body: e.Body, at: u.madeAt(e), traceparent: e.TraceParent}, &out)
	}
	got.Claimed, got.Settled = out.Claimed, out.Settled
}

func planned(plan []saga.Planned, dest string) bool {
	for _, p := range plan {
		if p.Dest == dest {
			return true
		}
	}
	return false
}

// take applies one event to its aggregate.
func (u *unit) take(r Reader, rec Record, plan []saga.Planned) error {
	e := rec.Event
	l := u.aggs[e.Aggregate]
	if l.err != nil {
		return l.err
	}
	agg := l.agg
	if agg.Find(e.ID) == nil {
		u.rows.event(e, u.madeAt(e))
		if u.rows.positions == nil {
			u.rows.positions = map[saga.ID]Position{}
		}
		u.rows.positions[e.ID] = rec.Position
	}
	role := u.store.RoleOf(e.Type)
	agg.Ingest(u.env, saga.Event{ID: e.ID, Type: e.Type, Role: role, Version: e.Version}, plan, r.Destination, u.env.Now.Add(u.store.cfg.ReadWithin))
	return nil
}

// madeAt is the event's time, in the resolution of the database.
func (u *unit) madeAt(e *Event) time.Time {
	if e.CreatedAt.IsZero() {
		return u.env.Now.Time()
	}
	return e.CreatedAt.UTC().Truncate(time.Microsecond)
}

func (r *rows) event(e *Event, at time.Time) {
	r.events.add(id(e.ID), text(e.Type), val(e.Aggregate.Type), val(e.Aggregate.ID), val(e.Version), val(int32(e.SchemaID)), val(e.Payload),
		val(e.Body), text(e.TraceParent), val(at))
}

func (r *rows) letter(reader Reader, rec Record) {
	d := rec.DeadLetter
	r.letters.add(val(reader.Name), val(rec.Topic), val(rec.Partition), val(rec.Offset), text(d.Reason), text(d.Detail), val(d.Key),
		val(encodeHeaders(d.Headers)), val(d.Value))
}

// encodeHeaders keeps order, repeats and any bytes.
func encodeHeaders(headers []Header) []byte {
	list := make([][2]*string, len(headers))
	for i, h := range headers {
		name := base64.StdEncoding.EncodeToString([]byte(h.Name))
		list[i][0] = &name
		if h.Value != nil {
			value := base64.StdEncoding.EncodeToString(h.Value)
			list[i][1] = &value
		}
	}
	out, err := json.Marshal(list)
	if err != nil {
		panic("journal: base64 text does not marshal: " + err.Error())
	}
	return out
}

// advance notes the offset behind the last record of each partition.
func (r *rows) advance(reader Reader, records []Record) {
	last := map[TopicPartition]int64{}
	var order []TopicPartition
	for _, rec := range records {
		p := TopicPartition{rec.Topic, rec.Partition}
		if _, seen := last[p]; !seen {
			order = append(order, p)
		}
		last[p] = max(last[p], rec.Offset+1)
	}
	for _, p := range order {
		topicID := pgtype.UUID{Bytes: reader.TopicIDs[p.Topic], Valid: true}
		r.offsets.add(val(reader.Name), val(p.Topic), val(topicID), val(p.Partition), val(last[p]))
	}
}

// Keep stores a dead letter outside of an Ingest, for readers that keep their offsets elsewhere. Repeating it changes nothing.
func (s *Store) Keep(ctx context.Context, reader string, p Position, d DeadLetter) error {
	var r rows
	r.letter(Reader{Name: reader}, Record{Position: p, DeadLetter: &d})
	if _, err := s.pool.Exec(ctx, insertLetters, r.letters.cols...); err != nil {
		return fmt.Errorf("keep a dead letter of %s: %w", reader, err)
	}
	return nil
}
