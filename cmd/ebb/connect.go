package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/schemas"
)

// where says how to reach the parts that roles share. What is not given is taken from a running `ebb up` or `ebb infra`.
type where struct {
	DSN      string   `help:"PostgreSQL connection string." env:"EBB_DSN" placeholder:"DSN"`
	Brokers  []string `help:"Kafka addresses." env:"EBB_BROKERS" placeholder:"HOST:PORT"`
	Registry []string `help:"Schema registry URLs." env:"EBB_REGISTRY_URL" placeholder:"URL"`
	Data     string   `help:"Folder of a running ebb up or ebb infra to take missing addresses from." default:".ebb" env:"EBB_DATA" type:"path"`
}

// runFile is .ebb/run.json: where the parts of a running `ebb up` are.
type runFile struct {
	PID      int      `json:"pid"`
	HTTP     string   `json:"http,omitempty"`
	Sim      string   `json:"sim,omitempty"`
	DSN      string   `json:"dsn"`
	Brokers  []string `json:"brokers"`
	Registry []string `json:"registry"`
	Postgres string   `json:"postgresDataDir,omitempty"`
}

func runPath(data string) string { return filepath.Join(data, "run.json") }

// write replaces the file in one step, readable for its owner only: the connection string holds a password.
func (r runFile) write(data string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp := runPath(data) + ".tmp"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, runPath(data))
}

func readRunFile(data string) (runFile, error) {
	var r runFile
	text, err := os.ReadFile(runPath(data))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w; remove it and start `ebb up` again", runPath(data), err)
	}
	return r, nil
}

// fill takes what is missing from the run file.
func (w *where) fill(needBrokers, needRegistry bool) error {
	if w.DSN != "" && (len(w.Brokers) > 0 || !needBrokers) && (len(w.Registry) > 0 || !needRegistry) {
		return nil
	}
	r, err := readRunFile(w.Data)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if w.DSN == "" {
		w.DSN = r.DSN
	}
	if len(w.Brokers) == 0 {
		w.Brokers = r.Brokers
	}
	if len(w.Registry) == 0 {
		w.Registry = r.Registry
	}
	for _, m := range []struct {
		missing bool
		flag    string
		env     string
	}{
		{w.DSN == "", "--dsn", "EBB_DSN"},
		{needBrokers && len(w.Brokers) == 0, "--brokers", "EBB_BROKERS"},
		{needRegistry && len(w.Registry) == 0, "--registry", "EBB_REGISTRY_URL"},
	} {
		if m.missing {
			return &usageError{fmt.Errorf("%s is not given, and no ebb up runs in %s; use %s, set %s, or start `ebb up`", m.flag, w.Data, m.flag, m.env)}
		}
	}
	return nil
}

// session is what most roles need: the database, the schemas and the journal.
type session struct {
	pool     *pgxpool.Pool
	registry *schemas.Client
	codec    *schemas.Codec
	store    *journal.Store
}

// open connects; the schemas are loaded, so that no transaction has to wait for the registry.
func (e *env) open(ctx context.Context, w where, conns int32) (*session, error) {
	cfg, err := pgxpool.ParseConfig(w.DSN)
	if err != nil {
		return nil, &usageError{errors.New("--dsn is not a PostgreSQL connection string")}
	}
	cfg.MaxConns = conns
	cfg.ConnConfig.RuntimeParams["application_name"] = "ebb"
	journal.Prepare(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	registry, err := schemas.NewClient(schemas.ClientConfig{URLs: w.Registry, Logger: e.log})
	if err != nil {
		pool.Close()
		return nil, err
	}
	s := &session{pool: pool, registry: registry, codec: schemas.NewCodec(registry)}
	if err := e.warm(ctx, registry); err != nil {
		s.close()
		return nil, err
	}
	s.store, err = journal.Open(journal.Config{Pool: pool, Encoder: s.codec, Logger: e.log})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// warm loads the schemas; a registry that is not there yet is waited for.
func (e *env) warm(ctx context.Context, registry *schemas.Client) error {
	for {
		err := registry.Warm(ctx)
		var away *schemas.UnavailableError
		if err == nil || !errors.As(err, &away) {
			return err
		}
		e.log.WarnContext(ctx, "waiting for the schema registry", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (s *session) close() {
	s.registry.Close()
	s.pool.Close()
}
