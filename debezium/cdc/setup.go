package cdc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Result says what Setup changed, for the log of a deploy. The zero value: nothing had to be done.
type Result struct {
	PublicationCreated bool
	PublicationAltered bool     // its options were put right
	TablesAdded        []string // to an existing publication
	SlotCreated        bool
}

// setupLock is the key of the session lock: "ebb cdc" in ASCII.
const setupLock = 0x65626220636463

// Setup makes the publication and then the slot in the database that conn is connected to. The role needs ownership of
// the tables, CREATE on the database and REPLICATION. conn must not be in a transaction: a slot cannot be made in one
// that has written.
func Setup(ctx context.Context, conn *pgx.Conn, cfg Config) (Result, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return Result{}, err
	}
	if err := checkWALLevel(ctx, conn); err != nil {
		return Result{}, err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(setupLock)); err != nil {
		return Result{}, fmt.Errorf("take the set-up lock: %w", err)
	}
	result, err := setup(ctx, conn, cfg)
	// On a connection that outlives us the lock must not stay, whatever has become of ctx.
	unlockCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, unlockErr := conn.Exec(unlockCtx, "SELECT pg_advisory_unlock($1)", int64(setupLock)); unlockErr != nil {
		err = errors.Join(err, fmt.Errorf("release the set-up lock: %w", unlockErr))
	}
	return result, err
}

func setup(ctx context.Context, conn *pgx.Conn, cfg Config) (Result, error) {
	if err := checkTables(ctx, conn, cfg.Tables); err != nil {
		return Result{}, err
	}
	slotExists, err := checkSlot(ctx, conn, cfg.Slot)
	if err != nil {
		return Result{}, err
	}
	var result Result
	if err := ensurePublication(ctx, conn, cfg, slotExists, &result); err != nil {
		return result, err
	}
	if !slotExists {
		if err := createSlot(ctx, conn, cfg); err != nil {
			return result, err
		}
		result.SlotCreated = true
	}
	return result, nil
}

func checkWALLevel(ctx context.Context, conn *pgx.Conn) error {
	var level string
	if err := conn.QueryRow(ctx, "SELECT current_setting('wal_level')").Scan(&level); err != nil {
		return fmt.Errorf("read wal_level: %w", err)
	}
	if level != "logical" {
		return &WALLevelError{Level: level}
	}
	return nil
}

func checkTables(ctx context.Context, conn *pgx.Conn, tables []string) error {
	rows, err := conn.Query(ctx, `
		SELECT t FROM unnest($1::text[]) AS t WHERE NOT EXISTS (
			SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname || '.' || c.relname = t AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p')`, tables)
	if err != nil {
		return fmt.Errorf("look for the tables to publish: %w", err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for the tables to publish: %w", err)
	}
	if len(missing) > 0 {
		return &MissingTablesError{Tables: missing}
	}
	return nil
}

// checkSlot says whether the slot exists, and refuses one that belongs to something else or is beyond use.
func checkSlot(ctx context.Context, conn *pgx.Conn, name string) (bool, error) {
	var plugin, database, status string
	var here bool
	err := conn.QueryRow(ctx, `
		SELECT coalesce(plugin, ''), coalesce(database, ''), coalesce(wal_status, ''), database = current_database()
		FROM pg_replication_slots WHERE slot_name = $1`, name).Scan(&plugin, &database, &status, &here)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for slot %q: %w", name, err)
	case plugin != "pgoutput":
		return false, &SlotError{Slot: name, Reason: fmt.Sprintf("its output plugin is %q, not pgoutput: choose another slot name", plugin)}
	case !here:
		return false, &SlotError{Slot: name, Reason: fmt.Sprintf("it belongs to database %q: slot names are shared by all databases of a server, choose another", database)}
	case status == "lost":
		return false, &SlotError{Slot: name, Reason: "the server has removed WAL it needs (wal_status lost): events may be lost; " +
			"drop it, run this again, and reconcile the outbox"}
	}
	return true, nil
}

func ensurePublication(ctx context.Context, conn *pgx.Conn, cfg Config, slotExists bool, result *Result) error {
	name := pgx.Identifier{cfg.Publication}.Sanitize()
	var allTables, right bool
	err := conn.QueryRow(ctx, `
		SELECT puballtables, pubinsert AND NOT pubupdate AND NOT pubdelete AND NOT pubtruncate AND pubviaroot
		FROM pg_publication WHERE pubname = $1`, cfg.Publication).Scan(&allTables, &right)
	if errors.Is(err, pgx.ErrNoRows) {
		if slotExists {
			return &SlotOlderError{Slot: cfg.Slot, Publication: cfg.Publication}
		}
		sql := fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish = 'insert', publish_via_partition_root = true)",
			name, sanitizeTables(cfg.Tables))
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("create publication %q: %w", cfg.Publication, err)
		}
		result.PublicationCreated = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for publication %q: %w", cfg.Publication, err)
	}
	if !right {
		sql := fmt.Sprintf("ALTER PUBLICATION %s SET (publish = 'insert', publish_via_partition_root = true)", name)
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("put publication %q right: %w", cfg.Publication, err)
		}
		result.PublicationAltered = true
	}
	if allTables {
		return nil
	}
	return addTables(ctx, conn, cfg, name, result)
}

func addTables(ctx context.Context, conn *pgx.Conn, cfg Config, name string, result *Result) error {
	rows, err := conn.Query(ctx, `
		SELECT n.nspname || '.' || c.relname FROM pg_publication p
		JOIN pg_publication_rel r ON r.prpubid = p.oid
		JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE p.pubname = $1`, cfg.Publication)
	if err != nil {
		return fmt.Errorf("read the tables of publication %q: %w", cfg.Publication, err)
	}
	have, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the tables of publication %q: %w", cfg.Publication, err)
	}
	var missing []string
	for _, table := range cfg.Tables {
		if !slices.Contains(have, table) {
			missing = append(missing, table)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	sql := fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", name, sanitizeTables(missing))
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("add tables to publication %q: %w", cfg.Publication, err)
	}
	result.TablesAdded = missing
	return nil
}

func sanitizeTables(tables []string) string {
	quoted := make([]string, len(tables))
	for i, table := range tables {
		quoted[i] = pgx.Identifier(strings.SplitN(table, ".", 2)).Sanitize()
	}
	return strings.Join(quoted, ", ")
}

// createSlot makes the slot by SQL: the replication command of the client library cannot ask for failover.
func createSlot(ctx context.Context, conn *pgx.Conn, cfg Config) error {
	var version int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return fmt.Errorf("read the server version: %w", err)
	}
	// One transaction, so that the time limit ends with it. It has written nothing, which the slot requires.
	sql, args := "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", []any{cfg.Slot}
	if version >= 170000 {
		sql, args = "SELECT pg_create_logical_replication_slot($1, 'pgoutput', false, false, $2)", append(args, !cfg.NoFailover)
	}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		limit := fmt.Sprintf("SET LOCAL lock_timeout = '%dms'", cfg.SlotWait.Milliseconds())
		if _, err := tx.Exec(ctx, limit); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "55P03" { // lock_not_available: the limit was reached
		return &SlotWaitError{Slot: cfg.Slot, Waited: cfg.SlotWait, Running: oldestTransactions(ctx, conn)}
	}
	if err != nil {
		return fmt.Errorf("create slot %q: %w", cfg.Slot, err)
	}
	return nil
}

// oldestTransactions describes what the slot waited for, as far as the role may see it.
func oldestTransactions(ctx context.Context, conn *pgx.Conn) []string {
	rows, err := conn.Query(ctx, `
		SELECT format('pid %s since %s', pid, coalesce(xact_start::text, 'unknown')) FROM pg_stat_activity
		WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 3`)
	if err != nil {
		return []string{"unknown: " + err.Error()}
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return []string{"unknown: " + err.Error()}
	}
	return lines
}
