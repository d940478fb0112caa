package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/journal"
)

// grace bounds what has to be done after the stop, beside requests and calls in flight, which have a setting.
const grace = 10 * time.Second

// served is what every role has: an address for health, readiness and metrics.
type served struct {
	HTTP  string        `help:"Address of the role's HTTP server (API, health, readiness, metrics)." default:"127.0.0.1:0" name:"http" placeholder:"HOST:PORT"`
	Grace time.Duration `help:"How long requests and calls in flight may go on after the stop." default:"10s"`
}

// serve adds the role's HTTP server to the group.
func (v served) serve(e *env, g *lifecycle.Group, ops *lifecycle.Ops, mux *http.ServeMux) error {
	ln, err := lifecycle.Listen(e.ctx, v.HTTP, "--http")
	if err != nil {
		return err
	}
	ops.Routes(mux)
	e.log.Info("listening", "http", "http://"+ln.Addr().String())
	g.Add("http", func(ctx context.Context) error { return lifecycle.Serve(ctx, ln, mux, v.Grace) })
	return nil
}

// frugal collects garbage twice as often as by default, unless GOGC says otherwise: there are many processes of one role each, with little
// that lives in them, and half of what they held was garbage.
func frugal() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// role runs one role on a session of its own.
func (e *env) role(w where, v served, conns int32, add func(g *lifecycle.Group, ops *lifecycle.Ops, mux *http.ServeMux, s *session) error) error {
	if err := w.fill(true, true); err != nil {
		return err
	}
	frugal()
	s, err := e.begin(e.ctx, w, conns)
	if err != nil {
		return err
	}
	defer s.close()
	var g lifecycle.Group
	ops, mux := lifecycle.NewOps(), http.NewServeMux()
	ops.Check("postgres", s.pool.Ping)
	ops.Check("schema registry", s.schemas.check)
	g.Add("schemas", s.schemas.actor)
	if err := add(&g, ops, mux, s); err != nil {
		return err
	}
	if err := v.serve(e, &g, ops, mux); err != nil {
		return err
	}
	g.Add("wake-ups", func(ctx context.Context) error {
		s.store.Listen(ctx)
		return nil
	})
	return g.Run(e.ctx)
}

type producerCmd struct {
	where
	served
	publishing
}

func (c *producerCmd) Run(e *env) error {
	if err := c.fill(true, true); err != nil {
		return err
	}
	return e.role(c.on(c.where), c.served, 20, func(g *lifecycle.Group, _ *lifecycle.Ops, mux *http.ServeMux, s *session) error {
		return addProducer(g, mux, s, c.Brokers, e.log)
	})
}

type consumerCmd struct {
	where
	served
	publishing
	Destination  string `help:"Name of the destination." required:""`
	Destinations string `help:"Folder of destination files." default:"${destinations}" type:"path"`
	Batch        int    `help:"Most claims or results of one transaction." default:"256"`

	recordFlags
}

func (c *consumerCmd) Run(e *env) error {
	set, err := spec.LoadDir(c.Destinations)
	if err != nil {
		return &usageError{err}
	}
	named := slices.ContainsFunc(set, func(s *spec.Spec) bool { return s.Name == c.Destination })
	if err := c.fill(true, true); err != nil {
		if !named { // no database can tell that it is one of the removed: most likely it is mistyped
			return c.unknown()
		}
		return err
	}
	host, _ := os.Hostname()
	return e.role(c.on(c.where), c.served, 8, func(g *lifecycle.Group, ops *lifecycle.Ops, _ *http.ServeMux, s *session) error {
		file, err := c.file(e, s, set)
		if err != nil {
			return err
		}
		decoder, err := c.decoder(s.codec)
		if err != nil {
			return err
		}
		ops.Registry.MustRegister(consumers.Backlog{Of: s.store.BacklogOf, Destinations: []string{file.Name}})
		return addConsumer(g, s, file, consumerSettings{
			worker: fmt.Sprintf("%s/%d", host, os.Getpid()), brokers: c.Brokers, batch: c.Batch, grace: c.Grace,
			lookup: spec.OSLookup(), metrics: consumers.NewMetrics(ops.Registry), decoder: decoder, records: c.records(), check: ops.Check,
		}, e.log)
	})
}

// file gives the destination's file: the one in the folder if it is the registered version, or the last one of a destination that is
// removed.
func (c *consumerCmd) file(e *env, s *session, set []*spec.Spec) (*spec.Spec, error) {
	for _, f := range set {
		if f.Name == c.Destination {
			return f, unapplied(e.ctx, s, f)
		}
	}
	gone, err := retiredDestinations(e.ctx, s)
	if err != nil {
		return nil, err
	}
	for _, f := range gone {
		if f.Name == c.Destination {
			e.log.Info("the destination is removed: what was begun there is finished, and undone where it has to be", "name", f.Name)
			return f, nil
		}
	}
	return nil, c.unknown()
}

func (c *consumerCmd) unknown() error {
	return &usageError{fmt.Errorf("--destination %s: no file in %s has this name", c.Destination, c.Destinations)}
}

// retiredDestinations gives the last files of the destinations that are removed: their consumers are still needed.
func retiredDestinations(ctx context.Context, s *session) ([]*spec.Spec, error) {
	versions, err := s.store.Retired(ctx)
	if err != nil {
		return nil, err
	}
	var out []*spec.Spec
	for _, v := range versions {
		if v.Kind != journal.KindFile { // its own program finishes what it began
			continue
		}
		file, err := spec.Parse(fmt.Sprintf("%s version %d", v.Name, v.Version), v.Source)
		if err != nil {
			return nil, fmt.Errorf("%s is removed and cannot be read by this release, but may still have to undo: %w", v.Name, err)
		}
		out = append(out, file)
	}
	return out, nil
}

// unapplied refuses a file that is not the registered version: plans are made of what is registered.
func unapplied(ctx context.Context, s *session, file *spec.Spec) error {
	v, err := s.store.Latest(ctx, file.Name)
	if err != nil {
		return err
	}
	if v.Hash != file.Hash() {
		return fmt.Errorf("%s differs from the registered version %d; run `ebb config apply %s` first", file.File, v.Version, filepath.Dir(file.File))
	}
	return nil
}

type compensatorCmd struct {
	where
	served
	publishing
}

func (c *compensatorCmd) Run(e *env) error {
	if err := c.fill(true, true); err != nil {
		return err
	}
	return e.role(c.on(c.where), c.served, 6, func(g *lifecycle.Group, _ *lifecycle.Ops, _ *http.ServeMux, s *session) error {
		return addCompensator(g, s, c.Brokers, e.log)
	})
}

type relayCmd struct {
	where
	served
	Slot   string   `help:"Name of the replication slot." default:"ebb_outbox"`
	Outbox []string `help:"Stream this outbox too; publish it with ebb migrate first." placeholder:"SCHEMA.TABLE"`
}

func (c *relayCmd) Run(e *env) error {
	if err := c.fill(true, false); err != nil {
		return err
	}
	var g lifecycle.Group
	ops, mux := lifecycle.NewOps(), http.NewServeMux()
	if err := addRelay(&g, ops, c.DSN, c.Slot, c.Brokers, e.log, c.Outbox...); err != nil {
		return err
	}
	if err := c.serve(e, &g, ops, mux); err != nil {
		return err
	}
	return g.Run(e.ctx)
}
