package testkit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/postgresrun"
)

// DSNVariable names the environment variable with the DSN of a server to use instead of starting one. Its role must be
// a superuser, and the server must run with wal_level=logical.
const DSNVariable = "EBB_TEST_DSN"

// init lets any test binary that imports this package be the supervisor of its own server, so that a package without
// TestMain can use DB as well. Only test binaries link this package.
func init() { postgresrun.MaybeSupervise() }

// shared is the server of this process.
var shared struct {
	once   sync.Once
	dsn    string
	server *postgresrun.Server
	err    error
}

// serverDSN gives the DSN of the shared server, starting it at the first call.
func serverDSN() (string, error) {
	shared.once.Do(func() {
		if dsn := os.Getenv(DSNVariable); dsn != "" {
			shared.dsn = dsn
			return
		}
		shared.server, shared.err = StartServer(context.Background())
		if shared.err == nil {
			shared.dsn = shared.server.DSN("postgres")
		}
	})
	return shared.dsn, shared.err
}

// StartServer starts a throw-away server with room for many databases and slots. It ends with this process.
func StartServer(ctx context.Context) (*postgresrun.Server, error) {
	dir, err := os.MkdirTemp("", "ebb-test-pg-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the test server: %w", err)
	}
	return postgresrun.Start(ctx, postgresrun.Config{
		DataDir:   dir,
		Ephemeral: true,
		Settings: map[string]string{
			"max_connections":       "400",
			"max_replication_slots": "64",
			"max_wal_senders":       "64",
			"shared_buffers":        "128MB",
		},
		Logger: slog.New(slog.DiscardHandler),
	})
}

// stopServer ends the server of this process if it has one.
func stopServer() error {
	if shared.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return shared.server.Stop(ctx)
}

// DB makes an empty database and gives its DSN. The test's end drops the database, with what is still connected to it
// and its replication slots.
func DB(t testing.TB) string {
	t.Helper()
	admin, err := serverDSN()
	require.NoError(t, err, "PostgreSQL for tests (set %s to use a running server)", DSNVariable)
	name := Name(t, "test")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, exec(ctx, admin, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, dropDatabase(ctx, admin, name))
	})
	dsn, err := withDatabase(admin, name)
	require.NoError(t, err)
	return dsn
}

// Pool opens a pool on a database and closes it when the test ends.
func Pool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// Name gives a name that no other test has: the prefix and 16 hexadecimal digits, lower case, fit for a database, a
// replication slot or a Kafka topic.
func Name(t testing.TB, prefix string) string {
	t.Helper()
	var b [8]byte
	_, err := rand.Read(b[:])
	require.NoError(t, err)
	return prefix + "_" + hex.EncodeToString(b[:])
}

func exec(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// dropDatabase frees the slots first: a database with a logical slot cannot be dropped, not even with FORCE.
func dropDatabase(ctx context.Context, admin, name string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for {
		_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
			WHERE database = $1 AND active_pid IS NOT NULL`, name)
		if err == nil {
			_, err = conn.Exec(ctx, `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
				WHERE database = $1 AND NOT temporary`, name)
		}
		if err == nil {
			_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		}
		if err == nil || !busy(err) {
			return err
		}
		if _, err := conn.Exec(ctx, "SELECT pg_sleep(0.02)"); err != nil {
			return fmt.Errorf("wait for the slots of %s: %w", name, err)
		}
	}
}

// busy is true for a slot or database that a terminated backend has not let go of yet.
func busy(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55006" || pgErr.Code == "42704")
}

func withDatabase(dsn, name string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + name, nil // keyword form: the last one wins
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("%s is neither a URL nor in keyword form", DSNVariable)
	}
	u.Path = "/" + name
	return u.String(), nil
}
