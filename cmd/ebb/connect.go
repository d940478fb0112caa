package main

import (
	"context"
	"errors"
	"fmt"
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

	place

	found      runFile
	schemaFile string
}

// fill takes what is missing from the run file.
func (w *where) fill(needBrokers, needRegistry bool) error {
	if w.DSN != "" && (len(w.Brokers) > 0 || !needBrokers) && (len(w.Registry) > 0 || !needRegistry) {
		return nil
	}
	r, err := w.find()
	if err != nil {
		return err
	}
	w.found = r
	if w.DSN == "" {
		w.DSN = r.DSN
	}
	if len(w.Brokers) == 0 {
		w.Brokers = r.Brokers
	}
	if len(w.Registry) == 0 {
		w.Registry = r.Registry
	}
	switch {
	case w.DSN == "":
		return w.missing("--dsn", "EBB_DSN")
	case needBrokers && len(w.Brokers) == 0:
		return w.missing("--brokers", "EBB_BROKERS")
	case needRegistry && len(w.Registry) == 0:
		return w.missing("--registry", "EBB_REGISTRY_URL")
	}
	return nil
}

// session is what most roles need: the database, the schemas and the journal.
type session struct {
	pool     *pgxpool.Pool
	registry *schemas.Client
	codec    *schemas.Codec
	store    *journal.Store
	// schemas is the wait for the registry, over when open returns.
	schemas *schemaWait
}

// open connects and waits for the registry: the schemas are loaded, so that no transaction has to wait for it.
func (e *env) open(ctx context.Context, w where, conns int32) (*session, error) {
	s, err := e.begin(ctx, w, conns)
	if err != nil {
		return nil, err
	}
	if err := s.schemas.run(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// begin connects and waits for nobody; what publishes has to wait for the schemas.
func (e *env) begin(ctx context.Context, w where, conns int32) (*session, error) {
	cfg, err := poolConfig(w.DSN, conns)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	registry, err := schemas.NewClient(schemas.ClientConfig{URLs: w.Registry, KnownFile: w.schemaFile, Logger: e.log})
	if err != nil {
		pool.Close()
		return nil, err
	}
	s := &session{pool: pool, registry: registry, codec: schemas.NewCodec(registry), schemas: newSchemaWait(registry)}
	s.store, err = journal.Open(journal.Config{Pool: pool, Encoder: s.codec, Logger: e.log})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func poolConfig(dsn string, conns int32) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, &usageError{errors.New("--dsn is not a PostgreSQL connection string")}
	}
	cfg.MaxConns = conns
	cfg.ConnConfig.RuntimeParams["application_name"] = "ebb"
	journal.Prepare(cfg)
	return cfg, nil
}

func (s *session) close() {
	s.registry.Close()
	s.pool.Close()
}

// patience bounds how long a short command waits for the database or the registry.
const patience = 10 * time.Second

// reader is what commands need that only look.
type reader struct {
	pool  *pgxpool.Pool
	store *journal.Store
}

// read opens the journal for a command that only looks: no registry is needed.
func (e *env) read(w where) (*reader, error) {
	if err := w.fill(false, false); err != nil {
		return nil, err
	}
	pool, err := e.connect(w, 2)
	if err != nil {
		return nil, err
	}
	store, err := journal.Open(journal.Config{Pool: pool, Encoder: noEncoder{}, Logger: e.log})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &reader{pool, store}, nil
}

func (r *reader) close() { r.pool.Close() }

// connect opens a pool and asks the database for a sign of life.
func (e *env) connect(w where, conns int32) (*pgxpool.Pool, error) {
	cfg, err := poolConfig(w.DSN, conns)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err == nil {
		if err = pool.Ping(ctx); err == nil {
			return pool, nil
		}
		pool.Close()
	}
	return nil, &unreachableError{fmt.Errorf("connect to PostgreSQL: %w%s", err, w.found.hint())}
}

// noEncoder is for commands that publish nothing.
type noEncoder struct{}

func (noEncoder) Encode(context.Context, any) ([]byte, error) {
	return nil, errors.New("this command only reads")
}

// operate opens the journal for an operator's move, which publishes: the registry is needed.
func (e *env) operate(w where) (*session, error) {
	if err := w.fill(false, true); err != nil {
		return nil, err
	}
	pool, err := e.connect(w, 1)
	if err != nil {
		return nil, err
	}
	pool.Close()
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	s, err := e.open(ctx, w, 3)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, &unreachableError{fmt.Errorf("the schema registry does not answer%s", w.found.hint())}
	}
	return s, err
}
