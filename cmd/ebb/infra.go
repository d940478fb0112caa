package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/ebbline/ebb/internal/kafkarun"
	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/internal/postgresrun"
	"github.com/ebbline/ebb/schemas"
)

// database is the name of the embedded database.
const database = "ebb"

// infraFlags choose the embedded parts.
type infraFlags struct {
	Data     string `help:"Folder of everything that is kept." default:".ebb" env:"EBB_DATA" type:"path"`
	Postgres string `help:"Use this PostgreSQL (14 or newer, wal_level logical) instead of starting one." placeholder:"DSN" env:"EBB_POSTGRES"`
	Sync     bool   `help:"Survive a power cut too, at the price of an fsync per commit and record."`
	Fresh    bool   `help:"Remove what is kept in the data folder first."`
	Slot     string `help:"Name of the replication slot; one for each Ebb on a PostgreSQL server." default:"ebb_outbox"`
}

// infra is the running embedded parts.
type infra struct {
	lock     *dirLock
	server   *postgresrun.Server
	broker   *kafkarun.Broker
	registry *kafkarun.Registry
	run      runFile
}

// startInfra starts database, broker and registry, and brings them to the newest version. What was started before a failure is stopped.
func startInfra(ctx context.Context, f infraFlags, partitions int32, log *slog.Logger) (_ *infra, err error) {
	in := &infra{}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.stop(ctx))
		}
	}()
	if in.lock, err = lockDir(f.Data, f.Fresh); err != nil {
		return in, err
	}
	if in.run.DSN, err = in.startPostgres(ctx, f, log); err != nil {
		return in, err
	}
	if in.broker, err = kafkarun.StartBroker(kafkarun.BrokerConfig{DataDir: filepath.Join(f.Data, "kafka"), Sync: f.Sync, Logger: log}); err != nil {
		return in, err
	}
	in.registry, err = kafkarun.StartRegistry(kafkarun.RegistryConfig{
		Path: filepath.Join(f.Data, "registry.jsonl"), Compatibility: sr.CompatFullTransitive, Logger: log,
	})
	if err != nil {
		return in, err
	}
	in.run.PID, in.run.Brokers, in.run.Registry = os.Getpid(), []string{in.broker.Addr()}, []string{in.registry.URL()}
	if _, err := migrate(ctx, in.run.DSN, f.Slot); err != nil {
		return in, err
	}
	if _, err := kafkarun.EnsureTopics(ctx, in.run.Brokers, topicSpecs(partitions, 1)); err != nil {
		return in, err
	}
	client, err := schemas.NewClient(schemas.ClientConfig{URLs: in.run.Registry, Logger: log})
	if err != nil {
		return in, err
	}
	defer client.Close()
	_, err = client.Register(ctx)
	return in, err
}

func (in *infra) startPostgres(ctx context.Context, f infraFlags, log *slog.Logger) (string, error) {
	if f.Postgres != "" {
		return f.Postgres, nil
	}
	server, err := postgresrun.Start(ctx, postgresrun.Config{DataDir: filepath.Join(f.Data, "postgres"), Sync: f.Sync, Fresh: f.Fresh, Logger: log})
	if err != nil {
		return "", fmt.Errorf("%w\n(or give a server of your own with --postgres DSN)", err)
	}
	in.server, in.run.Postgres = server, server.DataDir()
	conn, err := pgx.Connect(ctx, server.DSN("postgres"))
	if err != nil {
		return "", fmt.Errorf("connect to the embedded PostgreSQL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database).Scan(&exists); err != nil {
		return "", err
	}
	if !exists {
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+database); err != nil {
			return "", fmt.Errorf("create the embedded database: %w", err)
		}
	}
	return server.DSN(database), nil
}

// watch adds the embedded server's death to the group.
func (in *infra) watch(g *lifecycle.Group) {
	if in.server == nil {
		return
	}
	g.Add("postgres", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-in.server.Done():
			return fmt.Errorf("the embedded server ended: %w", in.server.Err())
		}
	})
}

// stop ends what runs, the newest first.
func (in *infra) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*grace)
	defer cancel()
	var errs []error
	if in.registry != nil {
		errs = append(errs, in.registry.Close())
	}
	if in.broker != nil {
		errs = append(errs, in.broker.Close())
	}
	if in.server != nil {
		errs = append(errs, in.server.Stop(ctx))
	}
	if in.lock != nil {
		errs = append(errs, in.lock.release())
	}
	return errors.Join(errs...)
}

type infraCmd struct {
	infraFlags
	Partitions int32 `help:"Partitions of new topics: how many consumers of a destination can share its work." default:"4"`
}

func (c *infraCmd) Run(e *env) error {
	in, err := startInfra(e.ctx, c.infraFlags, c.Partitions, e.log)
	if err != nil {
		return err
	}
	defer func() { _ = in.stop(e.ctx) }()
	if err := in.run.write(c.Data); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "ready; addresses in %s\n", runPath(c.Data))
	var g lifecycle.Group
	in.watch(&g)
	g.Add("signal", func(ctx context.Context) error { <-ctx.Done(); return nil })
	return g.Run(e.ctx)
}
