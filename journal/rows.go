package journal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/producer/outbox"
)

// rows are what a unit writes, by table, as columns for unnest.
type rows struct {
	sagaInsert columns
	sagaUpdate columns
	stepInsert columns
	stepUpdate columns
	events     columns
	requests   columns
	calls      columns
	offsets    columns
	letters    columns
	tombstones columns

	outboxSQL  string
	outboxArgs []any
	// positions are where the events of new sagas stand in Kafka.
	positions map[saga.ID]Position
}

// Position is where a record stands.
type Position struct {
	Topic     string
	Partition int32
	Offset    int64
}

// columns collects rows column by column: one array argument each.
type columns struct {
	n    int
	cols []any
}

// add appends one row; every row of a table has the same types.
func (c *columns) add(values ...adder) {
	if c.n == 0 {
		c.cols = make([]any, len(values))
	}
	for i, v := range values {
		c.cols[i] = v(c.cols[i])
	}
	c.n++
}

// adder appends one value to its column.
type adder func(col any) any

func val[T any](v T) adder {
	return func(col any) any {
		if col == nil {
			return []T{v}
		}
		return append(col.([]T), v)
	}
}

// text makes any text storable: PostgreSQL refuses NUL and invalid UTF-8, and nothing that has happened may be refused.
func text(s string) adder { return val(clean(s)) }

const maxText = 2000

func clean(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func id(v saga.ID) adder { return val(pgtype.UUID{Bytes: v, Valid: true}) }

func (r *rows) newSaga(k Key, s *saga.Saga) {
	p := r.positions[s.ID]
	r.sagaInsert.add(id(s.ID), text(s.EventType), val(s.Role.String()), val(k.Type), val(k.ID), val(s.Version), val(s.State.String()),
		val(s.Revision), text(s.Attention), text(s.Reason), val(s.CancelVersion), val(s.LateOpen()), val(timestamp(s.FailingSince)),
		val(k.hash()), val(p.Topic), val(p.Partition), val(p.Offset))
}

func (r *rows) changedSaga(s *saga.Saga) {
	r.sagaUpdate.add(id(s.ID), val(s.State.String()), val(s.Revision), text(s.Attention), text(s.Reason), val(s.CancelVersion),
		val(s.LateOpen()), val(timestamp(s.FailingSince)))
}

func (r *rows) newStep(sagaID saga.ID, place int, t *saga.Step) {
	r.stepInsert.add(append(stepValues(sagaID, t), val(int16(place)), val(int32(t.SpecVersion)), val(t.Late))...)
}

func (r *rows) changedStep(sagaID saga.ID, t *saga.Step) {
	r.stepUpdate.add(append(stepValues(sagaID, t), val(int32(t.SpecVersion)))...)
}

func stepValues(sagaID saga.ID, t *saga.Step) []adder {
	return []adder{
		id(sagaID), val(t.Dest), val(t.Dir.String()), val(t.State.String()), val(t.Maybe), val(int32(t.Attempt)), val(t.Epoch), text(t.Worker),
		val(timestamp(t.Lease)), val(timestamp(t.Due)), val(timestamp(t.FirstAttempt)), val(timestamp(t.ExpectBy)), val(timestamp(t.FirstSent)), val(t.Seq),
		val(t.Superseded), val(t.Outage), val(t.Revert.String()), text(t.Outcome), text(t.Reason), val(t.Asking), val(timestamp(t.SentUntil)),
	}
}

// publish prepares the outbox rows.
func (r *rows) publish(events []outbox.Event) error {
	if len(events) == 0 {
		return nil
	}
	sql, args, err := Outbox.Insert(events...)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	r.outboxSQL, r.outboxArgs = sql, args
	return nil
}

const (
	insertSagas = `INSERT INTO ebb.sagas (id, event_type, role, aggregate_type, aggregate_id, aggregate_version, state, revision, attention,
	reason, cancel_version, late_open, failing_since, lock_key, topic, partition, record_offset)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::text[],
	$10::text[], $11::bigint[], $12::boolean[], $13::timestamptz[], $14::bigint[], $15::text[], $16::int[], $17::bigint[])`

	updateSagas = `UPDATE ebb.sagas s SET state = u.state, revision = u.revision, attention = u.attention, reason = u.reason,
	cancel_version = u.cancel_version, late_open = u.late_open, failing_since = u.failing_since, updated_at = clock_timestamp()
FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::boolean[], $8::timestamptz[])
	AS u (id, state, revision, attention, reason, cancel_version, late_open, failing_since)
WHERE s.id = u.id`

	insertSteps = `INSERT INTO ebb.steps (saga_id, destination, direction, state, maybe, attempt, epoch, worker, lease_until, next_attempt_at,
	first_attempt_at, expect_by, first_sent_at, seq, superseded, outage, revert, outcome, reason, asking, sent_until, place, spec_version,
	late)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::int[], $7::bigint[], $8::text[], $9::timestamptz[],
	$10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::bigint[], $15::boolean[], $16::boolean[], $17::text[],
	$18::text[], $19::text[], $20::boolean[], $21::timestamptz[], $22::smallint[], $23::int[], $24::boolean[])`

	updateSteps = `UPDATE ebb.steps t SET state = u.state, maybe = u.maybe, attempt = u.attempt, epoch = u.epoch, worker = u.worker,
	lease_until = u.lease_until, next_attempt_at = u.next_attempt_at, first_attempt_at = u.first_attempt_at, expect_by = u.expect_by,
	first_sent_at = u.first_sent_at, seq = u.seq, superseded = u.superseded, outage = u.outage, revert = u.revert, outcome = u.outcome, reason = u.reason,
	asking = u.asking, sent_until = u.sent_until, spec_version = u.spec_version, updated_at = clock_timestamp()
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::int[], $7::bigint[], $8::text[], $9::timestamptz[],
	$10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::bigint[], $15::boolean[], $16::boolean[], $17::text[],
	$18::text[], $19::text[], $20::boolean[], $21::timestamptz[], $22::int[])
	AS u (saga_id, destination, direction, state, maybe, attempt, epoch, worker, lease_until, next_attempt_at, first_attempt_at, expect_by,
	first_sent_at, seq, superseded, outage, revert, outcome, reason, asking, sent_until, spec_version)
WHERE t.saga_id = u.saga_id AND t.destination = u.destination AND t.direction = u.direction`

	insertEvents = `INSERT INTO ebb.events (id, type, aggregate_type, aggregate_id, aggregate_version, schema_id, payload, body, traceparent,
	created_at)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::int[], $7::bytea[], $8::bytea[], $9::text[],
	$10::timestamptz[])
ON CONFLICT (id) DO NOTHING`

	insertRequests = `INSERT INTO ebb.requests (saga_id, destination, direction, spec_version, route, content)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::int[], $6::bytea[])
ON CONFLICT (saga_id, destination, direction) DO NOTHING`

	insertCalls = `INSERT INTO ebb.calls (saga_id, destination, direction, epoch, attempt, worker, sent, settled, fenced, class, status,
	reply_header, reply_body, error, started_at, duration_us)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::boolean[], $8::boolean[], $9::boolean[],
	$10::text[], $11::int[], $12::bytea[], $13::bytea[], $14::text[], $15::timestamptz[], $16::bigint[])`

	upsertOffsets = `INSERT INTO ebb.offsets AS o (reader, topic, topic_id, partition, next_offset)
SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::int[], $5::bigint[])
ON CONFLICT (reader, topic, partition) DO UPDATE
	SET topic_id = excluded.topic_id, next_offset = excluded.next_offset, updated_at = clock_timestamp()
	WHERE o.topic_id <> excluded.topic_id OR o.next_offset < excluded.next_offset`

	insertLetters = `INSERT INTO ebb.dead_letters (reader, topic, partition, record_offset, reason, detail, key, headers, value)
SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::text[], $6::text[], $7::bytea[], $8::bytea[], $9::bytea[])
ON CONFLICT (reader, topic, partition, record_offset) DO NOTHING`

	upsertTombstones = `INSERT INTO ebb.tombstones AS d (aggregate_type, aggregate_id, version, cancel_event, reason)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::uuid[], $5::text[])
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
	SET version = excluded.version, cancel_event = excluded.cancel_event, reason = excluded.reason WHERE d.version < excluded.version`
)

// queue adds the statements of every table that has rows. Sagas come before their steps, whose rows are read through them.
func (r *rows) queue(b *pgx.Batch) {
	for _, w := range []struct {
		sql  string
		cols *columns
	}{
		{insertEvents, &r.events}, {insertSagas, &r.sagaInsert}, {updateSagas, &r.sagaUpdate}, {insertSteps, &r.stepInsert},
		{updateSteps, &r.stepUpdate}, {insertRequests, &r.requests}, {insertCalls, &r.calls}, {upsertTombstones, &r.tombstones},
		{insertLetters, &r.letters}, {upsertOffsets, &r.offsets},
	} {
		if w.cols.n > 0 {
			b.Queue(w.sql, w.cols.cols...)
		}
	}
	if r.outboxSQL != "" {
		b.Queue(r.outboxSQL, r.outboxArgs...)
	}
}
