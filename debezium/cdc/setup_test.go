package cdc_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/debezium/cdc"
	"github.com/ebbline/ebb/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// bundle is a database with two outboxes, one of them partitioned.
type bundle struct {
	conn *pgx.Conn
	dsn  string
	cfg  cdc.Config
}

func setup(t *testing.T) bundle {
	t.Helper()
	dsn := testkit.DB(t)
	b := bundle{dsn: dsn, conn: connect(t, dsn), cfg: cdc.Config{
		Publication: "pub", Slot: testkit.Name(t, "slot"), Tables: []string{"a.outbox", "b.outbox"},
	}}
	b.exec(t, `CREATE SCHEMA a; CREATE SCHEMA b;
		CREATE TABLE a.outbox (id uuid PRIMARY KEY, payload bytea) PARTITION BY RANGE (id);
		CREATE TABLE a.outbox_default PARTITION OF a.outbox DEFAULT;
		CREATE TABLE b.outbox (id uuid PRIMARY KEY, payload bytea)`)
	return b
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

func (b bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.conn.Exec(context.Background(), sql, args...)
	require.NoError(t, err)
}

func TestSetupMakesPublicationAndSlotOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	first, err := cdc.Setup(ctx, b.conn, b.cfg)
	require.NoError(t, err)
	require.Equal(t, cdc.Result{PublicationCreated: true, SlotCreated: true}, first)

	var insertOnly, viaRoot bool
	require.NoError(t, b.conn.QueryRow(ctx, `SELECT pubinsert AND NOT pubupdate AND NOT pubdelete AND NOT pubtruncate, pubviaroot
		FROM pg_publication WHERE pubname = 'pub'`).Scan(&insertOnly, &viaRoot))
	require.True(t, insertOnly)
	require.True(t, viaRoot)
	var plugin string
	require.NoError(t, b.conn.QueryRow(ctx, "SELECT plugin FROM pg_replication_slots WHERE slot_name = $1", b.cfg.Slot).Scan(&plugin))
	require.Equal(t, "pgoutput", plugin)

	second, err := cdc.Setup(ctx, b.conn, b.cfg)
	require.NoError(t, err)
	require.Zero(t, second)
}

func TestSetupRunsFromManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	results := make([]cdc.Result, 4)
	errs := make([]error, len(results))
	var wg sync.WaitGroup
	for i := range results {
		conn := connect(t, b.dsn)
		wg.Go(func() { results[i], errs[i] = cdc.Setup(context.Background(), conn, b.cfg) })
	}
	wg.Wait()
	created := 0
	for i := range results {
		require.NoError(t, errs[i])
		if results[i].SlotCreated {
			created++
		}
	}
	require.Equal(t, 1, created)
}

func TestSetupPutsThePublicationRight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, "CREATE PUBLICATION pub FOR TABLE a.outbox")
	result, err := cdc.Setup(context.Background(), b.conn, b.cfg)
	require.NoError(t, err)
	require.Equal(t, cdc.Result{PublicationAltered: true, TablesAdded: []string{"b.outbox"}, SlotCreated: true}, result)
}

func TestSetupRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(t *testing.T, b *bundle)
		want    any
	}{
		"a table that does not exist": {
			prepare: func(_ *testing.T, b *bundle) { b.cfg.Tables = append(b.cfg.Tables, "c.outbox") },
			want:    new(*cdc.MissingTablesError),
		},
		"a slot older than the publication": {
			prepare: func(t *testing.T, b *bundle) {
				b.exec(t, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", b.cfg.Slot)
			},
			want: new(*cdc.SlotOlderError),
		},
		"a slot of another plugin": {
			prepare: func(t *testing.T, b *bundle) {
				b.exec(t, "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", b.cfg.Slot)
			},
			want: new(*cdc.SlotError),
		},
		"a slot of another database": {
			prepare: func(t *testing.T, b *bundle) {
				other := connect(t, testkit.DB(t))
				_, err := other.Exec(context.Background(), "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", b.cfg.Slot)
				require.NoError(t, err)
			},
			want: new(*cdc.SlotError),
		},
		"to wait for ever for a running transaction": {
			prepare: func(t *testing.T, b *bundle) {
				b.cfg.SlotWait = time.Millisecond
				tx, err := connect(t, b.dsn).Begin(context.Background())
				require.NoError(t, err)
				_, err = tx.Exec(context.Background(), "SELECT pg_current_xact_id()")
				require.NoError(t, err)
			},
			want: new(*cdc.SlotWaitError),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			test.prepare(t, &b)
			_, err := cdc.Setup(context.Background(), b.conn, b.cfg)
			require.ErrorAs(t, err, test.want)
		})
	}
}

func TestConfigNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := cdc.Setup(context.Background(), nil, cdc.Config{Slot: "No-Good", Tables: []string{"outbox"}})
	require.ErrorContains(t, err, "No-Good")
	require.ErrorContains(t, err, "schema.table")
}
