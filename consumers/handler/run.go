package handler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/schemas"
)

// Run registers the destination and works for it until ctx ends; then it stops in order: no new calls, Grace for those in flight, what
// is cut off given back. It returns nil after an orderly stop, else what ended it; a *HungError when every place is held by a handler
// that hangs, so that what supervises the process starts it again.
//
// A process may run several destinations, each with a Run of its own and an HTTP address of its own.
func Run(ctx context.Context, cfg Config, d Destination) error {
	if err := validate(cfg, d); err != nil {
		return err
	}
	cfg, d = cfg.withDefaults(), d.withDefaults()
	r, err := open(ctx, cfg, d)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.join(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it has begun
		}
		return err
	}
	return r.run(ctx)
}

// Remove ends a destination that no program serves any more: events that are written from now on do not go there. A program that runs it
// again registers it anew. aggregate is the Destination's Aggregate. It needs DSN and Brokers of the configuration.
func Remove(ctx context.Context, cfg Config, name, aggregate string) error {
	if len(cfg.Registry) == 0 {
		cfg.Registry = []string{"http://unused.invalid"} // nothing is published
	}
	if err := errors.Join(cfg.problems()...); err != nil {
		return err
	}
	r, err := open(ctx, cfg.withDefaults(), Destination{Name: name, Aggregate: aggregate}.withDefaults())
	if err != nil {
		return err
	}
	defer r.close()
	_, err = r.store.Leave(ctx, name, r.ends())
	return err
}

// runner is a destination with what it needs.
type runner struct {
	cfg      Config
	dest     Destination
	pool     *pgxpool.Pool
	registry *schemas.Client
	codec    *schemas.Codec
	store    *journal.Store
	hash     string
}

// open makes the clients; none of them connects yet.
func open(ctx context.Context, cfg Config, d Destination) (*runner, error) {
	pc, err := pgxpool.ParseConfig(cfg.DSN)
	if err != nil {
		return nil, errors.New("handler: Config.DSN is not a PostgreSQL connection string")
	}
	pc.MaxConns = cfg.Conns
	pc.ConnConfig.RuntimeParams["application_name"] = "ebb " + d.Name
	journal.Prepare(pc)
	r := &runner{cfg: cfg, dest: d}
	if r.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	if r.registry, err = schemas.NewClient(schemas.ClientConfig{URLs: cfg.Registry, KnownFile: cfg.SchemaFile, Logger: cfg.Logger}); err != nil {
		r.pool.Close()
		return nil, err
	}
	roles := journal.DefaultRoles()
	maps.Copy(roles, d.Roles)
	r.codec = schemas.NewCodec(r.registry)
	if r.store, err = journal.Open(journal.Config{Pool: r.pool, Encoder: r.codec, Roles: roles, Logger: cfg.Logger}); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *runner) close() {
	r.registry.Close()
	r.pool.Close()
}

func (r *runner) topic() string { return schemas.TopicPrefix + r.dest.Aggregate }

func (r *runner) ends() journal.EndOffsets {
	return consumers.EndOffsets(r.cfg.Brokers, r.cfg.KafkaOptions, r.topic())
}

// join registers the destination as it is.
func (r *runner) join(ctx context.Context) error {
	d, err := r.dest.registered()
	if err != nil {
		return fmt.Errorf("destination %s: %w", r.dest.Name, err)
	}
	r.hash = d.Hash
	from := journal.FromNow
	switch {
	case r.dest.From.earliest:
		from = journal.FromEarliest
	case !r.dest.From.at.IsZero():
		from = journal.FromOffsets(consumers.OffsetsAt(r.dest.From.at, r.cfg.Brokers, r.cfg.KafkaOptions, r.topic()))
	}
	change, err := r.store.Join(ctx, d, r.ends(), from)
	if err != nil {
		return err
	}
	r.cfg.Logger.InfoContext(ctx, "destination", "name", change.Name, "change", string(change.Action), "version", change.Version)
	return nil
}

// run is the process: the consumer, its health, and what wakes it.
func (r *runner) run(ctx context.Context) error {
	var g lifecycle.Group
	ops := lifecycle.NewOps()
	ops.Check("postgres", r.pool.Ping)
	hung := newWatch(r.dest.Name)
	known := make(chan struct{})
	ops.Check("schema registry", func(context.Context) error {
		select {
		case <-known:
			return nil
		default:
			return errors.New("waiting for the schema registry, nothing is lost")
		}
	})
	c, err := r.consumer(ops, hung)
	if err != nil {
		return err
	}
	hung.places = c.Places
	ops.Check("handler", hung.check)
	ops.Check("records", func(context.Context) error { return c.Reading() })
	ops.Registry.MustRegister(consumers.Backlog{Of: r.store.BacklogOf, Destinations: []string{r.dest.Name}})
	g.Add("destination "+r.dest.Name, func(ctx context.Context) error {
		// What follows from a call could not be published without the ids of the schemas.
		if err := r.registry.Await(ctx, nil); err != nil {
			return err
		}
		close(known)
		return c.Run(ctx)
	})
	g.Add("handlers", hung.run)
	g.Add("wake-ups", func(ctx context.Context) error {
		r.store.Listen(ctx)
		return nil
	})
	if err := r.serve(ctx, &g, ops); err != nil {
		return err
	}
	return g.Run(ctx)
}

// serve adds the HTTP server, where one is wanted.
func (r *runner) serve(ctx context.Context, g *lifecycle.Group, ops *lifecycle.Ops) error {
	if r.cfg.HTTP == "" {
		return nil
	}
	ln, err := lifecycle.Listen(ctx, r.cfg.HTTP, "Config.HTTP")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	ops.Routes(mux)
	if r.cfg.Listening != nil {
		r.cfg.Listening(ln.Addr().String())
	}
	r.cfg.Logger.InfoContext(ctx, "listening", "http", "http://"+ln.Addr().String())
	g.Add("http", func(ctx context.Context) error { return lifecycle.Serve(ctx, ln, mux, time.Second) })
	return nil
}

func (r *runner) consumer(ops *lifecycle.Ops, hung *watch) (*consumers.Consumer, error) {
	d := r.dest
	var every time.Duration
	if d.PerSecond > 0 {
		every = time.Duration(float64(time.Second) / d.PerSecond)
	}
	return consumers.New(consumers.Config{
		Destination: d.Name, Store: r.store, Decoder: r.codec.As(r.cfg.Format), Records: r.cfg.Records,
		Endpoint: &endpoint{dest: d, hash: r.hash, margin: r.cfg.Margin, watch: hung, log: r.cfg.Logger.With("destination", d.Name)},
		Brokers:  r.cfg.Brokers, KafkaOptions: r.cfg.KafkaOptions, Group: r.cfg.Group, Topics: []string{r.topic()}, AggregateType: d.Aggregate,
		Worker: r.cfg.Worker, Concurrency: d.Concurrency, RateEvery: every, RateBurst: d.Burst, Timeout: d.Timeout, LeaseMargin: r.cfg.Margin,
		Scan: r.cfg.Scan, Grace: r.cfg.Grace, Metrics: consumers.NewMetrics(ops.Registry), Logger: r.cfg.Logger,
	})
}
