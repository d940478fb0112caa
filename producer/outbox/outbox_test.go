package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/producer/outbox"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func setup(t *testing.T, table outbox.Table) *pgxpool.Pool {
	t.Helper()
	pool := testkit.Pool(t, testkit.DB(t))
	_, err := pool.Exec(t.Context(), table.DDL())
	require.NoError(t, err)
	return pool
}

func event(n int) outbox.Event {
	return outbox.Event{
		AggregateType: "order", AggregateID: fmt.Sprint(n), Type: "OrderCreated",
		Payload: []byte{0, 0, 0, 0, 7, 2, 0xff}, Version: int64(n), SchemaVersion: 1,
	}
}

type row struct {
	ID            uuid.UUID
	AggregateType string
	AggregateID   string
	Type          string
	Payload       []byte
	Version       int64
	SchemaVersion int32
	TraceParent   *string
	Part          string
}

func rows(t *testing.T, pool *pgxpool.Pool, table string) []row {
	t.Helper()
	got, err := pool.Query(t.Context(), "SELECT id::text, aggregatetype, aggregateid, type, payload, version, schema_version, traceparent, tableoid::regclass::text FROM "+table+" ORDER BY id")
	require.NoError(t, err)
	all, err := pgx.CollectRows(got, func(r pgx.CollectableRow) (out row, err error) {
		var id string
		err = r.Scan(&id, &out.AggregateType, &out.AggregateID, &out.Type, &out.Payload, &out.Version, &out.SchemaVersion, &out.TraceParent, &out.Part)
		out.ID = uuid.MustParse(id)
		return out, err
	})
	require.NoError(t, err)
	return all
}

func write(t *testing.T, pool *pgxpool.Pool, table outbox.Table, events ...outbox.Event) (ids []uuid.UUID, err error) {
	t.Helper()
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		ids, err = table.Write(t.Context(), tx, events...)
		return err
	})
	return ids, err
}

func TestWriteKeepsEveryByteAndTheOrder(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	own := uuid.Must(uuid.NewV7())
	a, b, c := event(1), event(2), event(3)
	a.TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b.ID, b.AggregateID, b.Payload = own, "bestellung-ü", []byte{}
	c.Version = 9007199254740993

	ids, err := write(t, pool, outbox.Table{}, a, b, c)
	require.NoError(t, err)
	require.Len(t, ids, 3)
	require.Equal(t, own, ids[1])

	byID := map[uuid.UUID]row{}
	for _, r := range rows(t, pool, "orders.outbox") {
		byID[r.ID] = r
		require.NotEqual(t, "orders.outbox_default", r.Part)
		require.Equal(t, uuid.Version(7), r.ID.Version())
		require.Equal(t, uuid.RFC4122, r.ID.Variant())
	}
	require.Len(t, byID, 3)
	require.Equal(t, "1", byID[ids[0]].AggregateID)
	require.Equal(t, a.Payload, byID[ids[0]].Payload)
	require.Equal(t, a.TraceParent, *byID[ids[0]].TraceParent)
	require.Equal(t, "bestellung-ü", byID[own].AggregateID)
	require.Equal(t, []byte{}, byID[own].Payload)
	require.Nil(t, byID[own].TraceParent)
	require.Equal(t, int64(9007199254740993), byID[ids[2]].Version)
	require.Equal(t, "OrderCreated", byID[ids[2]].Type)
	require.Equal(t, int32(1), byID[ids[2]].SchemaVersion)
}

func TestG01WriteGoesWithItsTransaction(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = outbox.Write(t.Context(), tx, event(1))
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Empty(t, rows(t, pool, "orders.outbox"))
}

func TestWriteManyIsOneStatementInOrder(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	events := make([]outbox.Event, 3000)
	for i := range events {
		events[i] = event(i + 1)
	}
	ids, err := write(t, pool, outbox.Table{}, events...)
	require.NoError(t, err)
	require.Len(t, ids, len(events))
	got, err := pool.Query(t.Context(), "SELECT version, id::text FROM orders.outbox ORDER BY version")
	require.NoError(t, err)
	var version int64
	var id string
	_, err = pgx.ForEachRow(got, []any{&version, &id}, func() error {
		require.Equal(t, ids[version-1].String(), id)
		return nil
	})
	require.NoError(t, err)
}

func TestInvalidEventsAreNamedAndLeaveTheTransactionUsable(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()

	bad := outbox.Event{AggregateType: "order\nx", AggregateID: "", Type: "a\x00", Version: -1, SchemaVersion: -1, TraceParent: strings.Repeat("x", 200), ID: uuid.New()}
	big := event(3)
	big.Payload = make([]byte, outbox.MaxPayload+1)
	_, err = outbox.Write(t.Context(), tx, event(1), bad, big)
	var invalid *outbox.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, 1, invalid.Index)
	require.Len(t, invalid.Problems, 8)
	require.ErrorContains(t, err, "event 2")
	require.ErrorContains(t, err, "524289 bytes")

	_, err = outbox.Write(t.Context(), tx, event(1))
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.Len(t, rows(t, pool, "orders.outbox"), 1)
}

func TestLimitsOfEachField(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	largest := event(1)
	largest.AggregateType = strings.Repeat("t", 200)
	largest.AggregateID = strings.Repeat("i", outbox.MaxAggregateID)
	largest.Type = strings.Repeat("y", outbox.MaxType)
	largest.Payload = make([]byte, outbox.MaxPayload)
	largest.TraceParent = strings.Repeat("p", outbox.MaxTraceParent)
	largest.Version, largest.SchemaVersion = 1<<63-1, 1<<31-1
	_, err := write(t, pool, outbox.Table{}, largest)
	require.NoError(t, err)

	edits := map[string]func(*outbox.Event){
		"aggregate type": func(e *outbox.Event) { e.AggregateType += "t" },
		"aggregate id":   func(e *outbox.Event) { e.AggregateID += "i" },
		"type":           func(e *outbox.Event) { e.Type += "y" },
		"payload":        func(e *outbox.Event) { e.Payload = append(e.Payload, 0) },
		"trace parent":   func(e *outbox.Event) { e.TraceParent += "p" },
		"schema version": func(e *outbox.Event) { e.SchemaVersion++ },
		"not valid UTF":  func(e *outbox.Event) { e.AggregateID = "\xff" },
		"tombstone":      func(e *outbox.Event) { e.Payload = nil },
	}
	for text, edit := range edits {
		bad := largest
		edit(&bad)
		_, err := write(t, pool, outbox.Table{}, bad)
		var invalid *outbox.InvalidError
		require.ErrorAs(t, err, &invalid, text)
		require.Contains(t, strings.Join(invalid.Problems, ";"), text)
	}
	_, err = write(t, pool, outbox.Table{}, make([]outbox.Event, outbox.MaxEvents+1)...)
	require.ErrorContains(t, err, "10001 events")
	_, err = write(t, pool, outbox.Table{})
	require.NoError(t, err)
}

func TestDuplicateID(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	e := event(1)
	e.ID = uuid.Must(uuid.NewV7())
	_, err := write(t, pool, outbox.Table{}, e)
	require.NoError(t, err)
	_, err = write(t, pool, outbox.Table{}, e)
	require.ErrorIs(t, err, outbox.ErrDuplicate)
	require.Len(t, rows(t, pool, "orders.outbox"), 1)
}

func TestTombstonesNeedTheTableAndTheEvent(t *testing.T) {
	t.Parallel()
	table := outbox.Table{Schema: "crm", Name: "events_out", Tombstones: true}
	pool := setup(t, table)
	e := event(1)
	e.Payload, e.AllowTombstone = nil, true
	_, err := write(t, pool, table, e)
	require.NoError(t, err)
	require.Nil(t, rows(t, pool, "crm.events_out")[0].Payload)

	table.Tombstones = false
	_, err = write(t, pool, table, e)
	require.ErrorContains(t, err, "Table.Tombstones")
}

func TestTableRefusesUpdatesAndMalformedRows(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	_, err := write(t, pool, outbox.Table{}, event(1))
	require.NoError(t, err)
	for _, sql := range []string{
		"UPDATE orders.outbox SET type = 'other'",
		"UPDATE orders.outbox SET id = orders.uuid7()",
		"INSERT INTO orders.outbox SELECT * FROM orders.outbox ON CONFLICT (id) DO UPDATE SET type = 'other'",
	} {
		_, err = pool.Exec(t.Context(), sql)
		requireCode(t, err, "23001", sql)
	}
	insert := "INSERT INTO orders.outbox (id, aggregatetype, aggregateid, type, payload, version, schema_version, traceparent) SELECT orders.uuid7(), "
	for _, values := range []string{
		`E'order\nx', '1', 'T', '\x00', 1, 1, NULL`,
		`'order', '', 'T', '\x00', 1, 1, NULL`,
		`'order', '1', '', '\x00', 1, 1, NULL`,
		`'order', '1', 'T', convert_to(repeat('x', 524289), 'UTF8'), 1, 1, NULL`,
		`'order', '1', 'T', '\x00', -1, 1, NULL`,
		`'order', '1', 'T', '\x00', 1, -1, NULL`,
		`'order', '1', 'T', '\x00', 1, 1, ''`,
	} {
		_, err = pool.Exec(t.Context(), insert+values)
		requireCode(t, err, "23514", values)
	}
	_, err = pool.Exec(t.Context(), insert+`'order', '1', 'T', NULL, 1, 1, NULL`)
	requireCode(t, err, "23502", "null payload")
}

func requireCode(t *testing.T, err error, code, what string) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg, what)
	require.Equal(t, code, pg.Code, what)
}

func TestDDLCanBeRepeatedAndSharesASchema(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{Schema: "ebb"})
	for _, ddl := range []string{outbox.DDL("ebb", "outbox"), outbox.DDL("ebb", "outbox_repair"), outbox.DDL("ebb", "outbox_repair")} {
		_, err := pool.Exec(t.Context(), ddl)
		require.NoError(t, err)
	}
	var columns string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'ebb.outbox_repair'::regclass AND attnum > 0`).Scan(&columns))
	require.Equal(t, "id,aggregatetype,aggregateid,type,payload,version,schema_version,traceparent,created_at", columns)
}

func TestNamesAreChecked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Orders", `a"b`, "a b", strings.Repeat("x", 41), "1a"} {
		require.Panics(t, func() { outbox.DDL("orders", name) }, name)
		require.Panics(t, func() { outbox.DDL(name, "outbox") }, name)
		_, _, err := outbox.Table{Name: name}.Insert(event(1))
		require.Error(t, err)
	}
}

func TestMakePartitions(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	made, err := outbox.Table{}.MakePartitions(t.Context(), pool, 14)
	require.NoError(t, err)
	require.Zero(t, made, "the DDL made them")

	var group sync.WaitGroup
	results, failures := make([]int, 4), make([]error, 4)
	for i := range results {
		group.Go(func() { results[i], failures[i] = outbox.Table{}.MakePartitions(t.Context(), pool, 20) })
	}
	group.Wait()
	require.NoError(t, errors.Join(failures...))
	require.Equal(t, 6, results[0]+results[1]+results[2]+results[3], "made once between them")

	_, err = outbox.Table{}.MakePartitions(t.Context(), pool, 367)
	requireCode(t, errors.Unwrap(err), "22023", "too many days")
}

func TestDayWithRowsInTheDefaultPartitionStaysThere(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	var now time.Time
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now))
	e := event(1)
	e.ID = idAt(now.UTC().AddDate(0, 0, 16))
	_, err := write(t, pool, outbox.Table{}, e)
	require.NoError(t, err)
	require.Equal(t, "orders.outbox_default", rows(t, pool, "orders.outbox")[0].Part)

	made, err := outbox.Table{}.MakePartitions(t.Context(), pool, 18)
	require.NoError(t, err)
	require.Equal(t, 3, made, "days 15, 17 and 18")
	require.Len(t, rows(t, pool, "orders.outbox"), 1)
}

func TestEveryDayBoundIsMidnightUTC(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	_, err := pool.Exec(t.Context(), "SET timezone = 'America/New_York'")
	require.NoError(t, err)
	var now time.Time
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now))
	day := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 5)
	last, first := event(1), event(2)
	last.ID, first.ID = idAt(day.Add(-time.Millisecond)), idAt(day)
	_, err = write(t, pool, outbox.Table{}, last, first)
	require.NoError(t, err)
	got := rows(t, pool, "orders.outbox")
	require.Equal(t, "orders.outbox_"+day.AddDate(0, 0, -1).Format("20060102"), got[0].Part)
	require.Equal(t, "orders.outbox_"+day.Format("20060102"), got[1].Part)
}

// idAt makes the UUIDv7 of a moment.
func idAt(at time.Time) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}

func TestIDsComeFromTheDatabaseClockAndSort(t *testing.T) {
	t.Parallel()
	pool := setup(t, outbox.Table{})
	var before, after time.Time
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&before))
	ids, err := write(t, pool, outbox.Table{}, event(1), event(2))
	require.NoError(t, err)
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&after))
	for _, id := range ids {
		ms := int64(0)
		for _, b := range id[:6] {
			ms = ms<<8 | int64(b)
		}
		require.GreaterOrEqual(t, ms, before.UnixMilli())
		require.LessOrEqual(t, ms, after.UnixMilli())
	}
	var distinct, sorted int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(DISTINCT id), count(*) FILTER (WHERE id >= before) FROM (
		SELECT id, coalesce(lag(id) OVER (ORDER BY n), id) AS before FROM (SELECT n, orders.uuid7() AS id FROM generate_series(1, 5000) n) made) made`).Scan(&distinct, &sorted))
	require.Equal(t, 5000, distinct)
	// Below a quarter of a microsecond the order is random; the rest must hold.
	require.Greater(t, sorted, 2500)
}

func TestLeastPrivilegeWriter(t *testing.T) {
	t.Parallel()
	dsn := testkit.DB(t)
	pool := testkit.Pool(t, dsn)
	_, err := pool.Exec(t.Context(), outbox.DDL("orders", "outbox"))
	require.NoError(t, err)
	role := testkit.Name(t, "writer")
	_, err = pool.Exec(t.Context(), fmt.Sprintf(`CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA orders TO %[1]s; GRANT INSERT ON orders.outbox TO %[1]s; GRANT EXECUTE ON FUNCTION orders.outbox_make_partitions(int) TO %[1]s`, role))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", role))
		require.NoError(t, err)
	})
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+role)
		require.NoError(t, err)
		_, err = outbox.Write(t.Context(), tx, event(1), event(2))
		require.NoError(t, err)
		_, err = outbox.Table{}.MakePartitions(t.Context(), tx, 15)
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "UPDATE orders.outbox SET type = 'x'")
		requireCode(t, err, "42501", "update")
		return nil
	})
	require.ErrorIs(t, err, pgx.ErrTxCommitRollback, "the refused update aborted it")
}
