package outbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// The table that the package-level Write uses.
const (
	DefaultSchema = "orders"
	DefaultTable  = "outbox"
)

// ErrDuplicate is returned when an event with this id is already in the table.
// The transaction is aborted.
var ErrDuplicate = errors.New("outbox: an event with this id is already in the table; roll back and look whether the first one is what you meant")

// Table names one outbox table. The zero value is orders.outbox.
type Table struct {
	// Schema of the table: a plain lower-case identifier of at most 40
	// characters. Empty means DefaultSchema.
	Schema string
	// Name of the table, as Schema. Empty means DefaultTable.
	Name string
	// Tombstones makes DDL leave the payload column nullable and Write accept
	// events that set AllowTombstone. False: a nil payload is always refused.
	Tombstones bool
}

// Write inserts the events into orders.outbox. See Table.Write.
func Write(ctx context.Context, tx pgx.Tx, events ...Event) ([]uuid.UUID, error) {
	return Table{}.Write(ctx, tx, events...)
}

// Write inserts the events in one statement, in the order given, and returns
// their ids in the same order. It neither commits nor rolls back. Without
// events it does nothing.
//
// Errors: joined *InvalidError before the database is touched; ErrDuplicate;
// database errors, wrapped.
func (t Table) Write(ctx context.Context, tx pgx.Tx, events ...Event) ([]uuid.UUID, error) {
	if len(events) == 0 {
		return nil, nil
	}
	sql, args, err := t.Insert(events...)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, t.writeError(err)
	}
	ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (uuid.UUID, error) {
		var id pgtype.UUID
		err := row.Scan(&id)
		return id.Bytes, err
	})
	if err != nil {
		return nil, t.writeError(err)
	}
	return ids, nil
}

// Insert checks the events and returns the statement that Write runs, with its
// arguments; its rows are the ids, in order. It is for callers that pipeline
// several statements of one transaction in a pgx.Batch; everyone else wants
// Write. At least one event is needed.
func (t Table) Insert(events ...Event) (sql string, args []any, err error) {
	t, err = t.withDefaults()
	if err != nil {
		return "", nil, err
	}
	if len(events) == 0 || len(events) > MaxEvents {
		return "", nil, fmt.Errorf("outbox: %d events in one insert, allowed are 1 to %d; write in several calls of the same transaction", len(events), MaxEvents)
	}
	if err := t.check(events); err != nil {
		return "", nil, err
	}
	if len(events) == 1 {
		return fmt.Sprintf(insertOneSQL, t.quoted(), t.function("uuid7")), values(&events[0]), nil
	}
	return fmt.Sprintf(insertManySQL, t.quoted(), t.function("uuid7")), columns(events), nil
}

// insertOneSQL is the usual case, and costs half of insertManySQL.
const insertOneSQL = `INSERT INTO %[1]s (id, aggregatetype, aggregateid, type, payload, version, schema_version, traceparent)
	VALUES (coalesce($1::uuid, %[2]s()), $2, $3, $4, $5, $6, $7, $8) RETURNING id`

// insertManySQL settles the ids before the INSERT, because the order of
// RETURNING is not promised and the callers pair ids with events by position.
const insertManySQL = `WITH event AS MATERIALIZED (
	SELECT coalesce(id, %[2]s()) AS id, aggregatetype, aggregateid, type, payload, version, schema_version, traceparent, n
	FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[], $7::int[], $8::text[])
		WITH ORDINALITY AS e (id, aggregatetype, aggregateid, type, payload, version, schema_version, traceparent, n)
), inserted AS (
	INSERT INTO %[1]s (id, aggregatetype, aggregateid, type, payload, version, schema_version, traceparent)
	SELECT id, aggregatetype, aggregateid, type, payload, version, schema_version, traceparent FROM event ORDER BY n
)
SELECT id FROM event ORDER BY n`

func values(e *Event) []any {
	return []any{
		pgtype.UUID{Bytes: e.ID, Valid: e.ID != uuid.Nil}, e.AggregateType, e.AggregateID, e.Type,
		e.Payload, e.Version, int32(e.SchemaVersion), pgtype.Text{String: e.TraceParent, Valid: e.TraceParent != ""},
	}
}

func columns(events []Event) []any {
	n := len(events)
	ids := make([]pgtype.UUID, n)
	types, keys, kinds := make([]string, n), make([]string, n), make([]string, n)
	payloads := make([][]byte, n)
	versions, schemas := make([]int64, n), make([]int32, n)
	traces := make([]pgtype.Text, n)
	for i := range events {
		e := &events[i]
		ids[i] = pgtype.UUID{Bytes: e.ID, Valid: e.ID != uuid.Nil}
		types[i], keys[i], kinds[i] = e.AggregateType, e.AggregateID, e.Type
		payloads[i] = e.Payload
		versions[i], schemas[i] = e.Version, int32(e.SchemaVersion)
		traces[i] = pgtype.Text{String: e.TraceParent, Valid: e.TraceParent != ""}
	}
	return []any{ids, types, keys, kinds, payloads, versions, schemas, traces}
}

func (t Table) check(events []Event) error {
	var invalid []error
	for i := range events {
		problems := events[i].check()
		if events[i].Payload == nil && events[i].AllowTombstone && !t.Tombstones {
			problems = append(problems, fmt.Sprintf("payload is nil, a tombstone, and the table %s.%s takes none; set Table.Tombstones", t.Schema, t.Name))
		}
		if len(problems) > 0 {
			invalid = append(invalid, &InvalidError{Index: i, Problems: problems})
		}
	}
	return errors.Join(invalid...)
}

func (t Table) writeError(err error) error {
	const uniqueViolation = "23505"
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == uniqueViolation {
		return fmt.Errorf("%w: %w", ErrDuplicate, err)
	}
	return fmt.Errorf("outbox: insert: %w", err)
}

// Querier is what MakePartitions needs: a pool, a connection or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// MakePartitions makes the daily partitions from today (UTC, the database's
// clock) to today plus days that are missing, and returns how many it made.
// Calls at the same time wait for each other. days is 0 to 366.
func (t Table) MakePartitions(ctx context.Context, db Querier, days int) (int, error) {
	t, err := t.withDefaults()
	if err != nil {
		return 0, err
	}
	var made int
	if err := db.QueryRow(ctx, "SELECT "+t.function(t.Name+"_make_partitions")+"($1)", days).Scan(&made); err != nil {
		return 0, fmt.Errorf("outbox: make partitions of %s.%s: %w", t.Schema, t.Name, err)
	}
	return made, nil
}

// identifier keeps every derived name (partitions, functions) below
// PostgreSQL's 63 bytes and free of anything that would need quoting.
var identifier = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

func (t Table) withDefaults() (Table, error) {
	if t.Schema == "" {
		t.Schema = DefaultSchema
	}
	if t.Name == "" {
		t.Name = DefaultTable
	}
	if !identifier.MatchString(t.Schema) || !identifier.MatchString(t.Name) {
		return t, fmt.Errorf("outbox: table %s.%s: schema and name must match %s", clip(t.Schema), clip(t.Name), identifier)
	}
	return t, nil
}

func (t Table) quoted() string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

func (t Table) function(name string) string { return pgx.Identifier{t.Schema, name}.Sanitize() }
