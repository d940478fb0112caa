package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/bench/probe"
	"github.com/ebbline/ebb/internal/postgresrun"
)

// server is the PostgreSQL of all contenders.
type server struct {
	pg         *postgresrun.Server
	postmaster int
	version    string
	made       int
}

// startServer runs a server whose commits are synced. Commit times are kept, so that latencies need no clock of ours; it costs every
// contender the same 12 bytes per transaction.
func startServer(ctx context.Context, dir string) (*server, error) {
	pg, err := postgresrun.Start(ctx, postgresrun.Config{
		DataDir: filepath.Join(dir, "postgres"), Sync: true, Ephemeral: true, Logger: slog.New(slog.DiscardHandler),
		Settings: map[string]string{"track_commit_timestamp": "on"},
	})
	if err != nil {
		return nil, err
	}
	s := &server{pg: pg}
	err = s.admin(ctx, func(conn *pgx.Conn) error {
		var pid int
		if err := conn.QueryRow(ctx, "SELECT pg_backend_pid(), current_setting('server_version')").Scan(&pid, &s.version); err != nil {
			return err
		}
		s.postmaster = probe.ParentOf(pid)
		return nil
	})
	if err != nil {
		s.stop(ctx)
		return nil, err
	}
	return s, nil
}

func (s *server) stop(ctx context.Context) { _ = s.pg.Stop(context.WithoutCancel(ctx)) }

func (s *server) admin(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.pg.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.pg.Port())) }

// database is a contender's own.
type database struct {
	server *server
	name   string // also the name of its slot, if it has one
	dsn    string
	pool   *pgxpool.Pool
}

// create makes an empty database, behind a checkpoint: nobody pays for the pages of an earlier contender.
func (s *server) create(ctx context.Context, kind string, conns int) (*database, error) {
	s.made++
	d := &database{server: s, name: fmt.Sprintf("bench_%s_%d", kind, s.made)}
	d.dsn = s.pg.DSN(d.name)
	err := s.admin(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{"CREATE DATABASE " + d.name, "CHECKPOINT"} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(d.dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(conns)
	if d.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", d.name, err)
	}
	return d, nil
}

// drop removes the database and its slot, which would hold back the server's WAL.
func (d *database) drop(ctx context.Context) error {
	d.pool.Close()
	ctx = context.WithoutCancel(ctx)
	return d.server.admin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", d.name)
		if err != nil {
			return fmt.Errorf("drop slot %s: %w", d.name, err)
		}
		if _, err = conn.Exec(ctx, "DROP DATABASE "+d.name+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop database %s: %w", d.name, err)
		}
		return nil
	})
}

// transactions counts what the database has committed and rolled back.
func (d *database) transactions(ctx context.Context) (int64, error) {
	var n int64
	err := d.server.admin(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1", d.name).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count transactions of %s: %w", d.name, err)
	}
	return n, nil
}
