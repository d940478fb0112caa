package journal

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that goose speaks through
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/ebbline/ebb/producer/outbox"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// MigrationsTable holds the versions of schema ebb.
const MigrationsTable = "public.ebb_journal_migrations"

// Migrate brings schema ebb to the newest version. Several processes may call it at once: one applies, the others wait.
func Migrate(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return fmt.Errorf("migrate the journal: %w", err)
	}
	defer db.Close()
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return fmt.Errorf("migrate the journal: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("migrate the journal: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(MigrationsTable),
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(outboxMigration(2)),
		goose.WithSlog(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return fmt.Errorf("migrate the journal: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the journal: %w", err)
	}
	return nil
}

// Outbox is where the pipeline publishes; OutboxRepair takes copies of rows that were lost on the way.
var (
	Outbox       = outbox.Table{Schema: "ebb", Name: "outbox"}
	OutboxRepair = outbox.Table{Schema: "ebb", Name: "outbox_repair"}
)

// outboxMigration makes both outbox tables from the one definition that all outboxes share.
func outboxMigration(version int64) *goose.Migration {
	up := func(ctx context.Context, tx *sql.Tx) error {
		for _, t := range []outbox.Table{Outbox, OutboxRepair} {
			if _, err := tx.ExecContext(ctx, t.DDL()); err != nil {
				return fmt.Errorf("make %s.%s: %w", t.Schema, t.Name, err)
			}
		}
		return nil
	}
	down := func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DROP TABLE ebb.outbox, ebb.outbox_repair")
		return err
	}
	return goose.NewGoMigration(version, &goose.GoFunc{RunTx: up}, &goose.GoFunc{RunTx: down})
}
