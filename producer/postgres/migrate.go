package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver goose goes through
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/ebbline/ebb/producer/outbox"
)

// MigrationTable records which migrations of this package have run.
const MigrationTable = "public.ebb_orders_migrations"

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrate brings the schema "orders" to the newest version. It is idempotent,
// only goes forward, and starters at the same time wait for each other. The
// role of dsn owns what is made.
func Migrate(ctx context.Context, dsn string) (err error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return fmt.Errorf("migrate orders: open the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := migrations(db)
	if err != nil {
		return fmt.Errorf("migrate orders: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate orders: %w", err)
	}
	return nil
}

func migrations(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	// Starters that find the lock taken ask again every second for ten minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 600))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(MigrationTable),
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(goose.NewGoMigration(1, &goose.GoFunc{RunTx: makeOutbox}, nil)),
	)
}

func makeOutbox(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, outbox.DDL(outbox.DefaultSchema, outbox.DefaultTable))
	return err
}
