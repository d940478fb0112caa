package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/sim"
)

type upCmd struct {
	infraFlags
	Partitions   int32         `help:"Partitions of new topics. One process gains nothing from more, and the embedded broker syncs each by itself." default:"1"`
	HTTP         string        `help:"Address of the order API, health, readiness and metrics." default:"127.0.0.1:8080" name:"http" placeholder:"HOST:PORT"`
	SimHTTP      string        `help:"Address of the simulated destinations." default:"127.0.0.1:8090" name:"sim-http" placeholder:"HOST:PORT"`
	Destinations string        `help:"Folder of destination files; the shipped ones if it is not there." default:"${destinations}" type:"path"`
	NoSim        bool          `help:"Do not simulate the destinations; their addresses come from the environment."`
	Quiet        bool          `help:"Let the simulated destinations refuse and fail nothing by chance."`
	Demo         int           `help:"Create this many orders and print how each ends." placeholder:"N"`
	Exit         bool          `help:"End after the demo."`
	Batch        int           `help:"Most claims or results of one transaction." default:"256"`
	Grace        time.Duration `help:"How long requests and calls in flight may go on after the stop." default:"10s"`
	Pprof        string        `help:"Serve profiles of this process (net/http/pprof) at this loopback address." name:"pprof" placeholder:"HOST:PORT"`
	Config       string        `help:"YAML file with any of these flags; those on the command line win." placeholder:"FILE" type:"path"`
}

func (c *upCmd) Run(e *env) error {
	if c.Exit && c.Demo == 0 {
		return &usageError{errors.New("--exit ends after the demo; give --demo N as well")}
	}
	set, err := loadDestinations(c.Destinations)
	if err != nil {
		return &usageError{err}
	}
	// The addresses are taken first: a port that is in use should cost nobody the start of a database.
	api, simulated, err := c.listen(e.ctx)
	if err != nil {
		return err
	}
	defer closeListeners(api, simulated)
	var profiled net.Listener
	if c.Pprof != "" {
		if profiled, err = listenPprof(e.ctx, c.Pprof); err != nil {
			return err
		}
		defer closeListeners(profiled)
	}
	in, err := startInfra(e.ctx, c.infraFlags, c.Partitions, e.log)
	if err != nil {
		return interrupted(e.ctx, err)
	}
	defer func() {
		if err := in.stop(e.ctx); err != nil {
			e.log.Warn("stopping", "error", err)
		}
	}()
	in.run.HTTP = "http://" + api.Addr().String()
	if simulated != nil {
		in.run.Sim = "http://" + simulated.Addr().String()
	}
	return interrupted(e.ctx, c.serve(e, in, set, api, simulated, profiled))
}

// interrupted makes the end by a signal an orderly one, also in the middle of the start.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *upCmd) listen(ctx context.Context) (api, simulated net.Listener, err error) {
	if api, err = lifecycle.Listen(ctx, c.HTTP, "--http"); err != nil || c.NoSim {
		return api, nil, err
	}
	if simulated, err = lifecycle.Listen(ctx, c.SimHTTP, "--sim-http"); err != nil {
		api.Close()
	}
	return api, simulated, err
}

func closeListeners(list ...net.Listener) {
	for _, ln := range list {
		if ln != nil {
			_ = ln.Close()
		}
	}
}

// serve runs all roles on the started infrastructure until a signal, the end of the demo, or the death of a part.
func (c *upCmd) serve(e *env, in *infra, set []*spec.Spec, api, simulated, profiled net.Listener) error {
	s, err := e.open(e.ctx, where{DSN: in.run.DSN, Brokers: in.run.Brokers, Registry: in.run.Registry}, 24)
	if err != nil {
		return err
	}
	defer s.close()
	if err := applyAll(e, s, in, set); err != nil {
		return err
	}
	var g lifecycle.Group
	ops, mux := lifecycle.NewOps(), http.NewServeMux()
	ops.Routes(mux)
	ops.Check("postgres", s.pool.Ping)
	in.watch(&g)
	if simulated != nil {
		sm, err := openSim(e, filepath.Join(c.Data, "sim.ledger"), c.Quiet, c.Sync)
		if err != nil {
			return err
		}
		defer sm.Close()
		ops.Check("sim", func(context.Context) error { return sm.Err() })
		// The simulated destinations outlive the roles that call them: a call in flight is answered.
		stopSim := background(e, "sim", func(ctx context.Context) error { return sm.Serve(ctx, simulated) })
		defer stopSim()
	}
	recorder, stopRecorder := c.startRecorder(e, &g, s)
	defer stopRecorder()
	if err := c.addRoles(e.ctx, &g, ops, mux, s, in, set, recorder, e.log); err != nil {
		return err
	}
	g.Add("http", func(ctx context.Context) error { return lifecycle.Serve(ctx, api, mux, c.Grace) })
	if profiled != nil {
		g.Add("pprof", func(ctx context.Context) error { return lifecycle.Serve(ctx, profiled, profiles(), time.Second) })
	}
	if err := in.run.write(c.Data); err != nil {
		return err
	}
	e.log.Info("up", "api", in.run.HTTP, "sim", in.run.Sim, "addresses", runPath(c.Data))
	c.addDemo(e, &g, s, in)
	err = g.Run(e.ctx)
	c.sayWhatIsOpen(e, s)
	return err
}

func applyAll(e *env, s *session, in *infra, set []*spec.Spec) error {
	changes, err := applyDestinations(e.ctx, s.store, set, in.run.Brokers, journal.FromNow, false)
	if err != nil {
		return err
	}
	for _, ch := range changes {
		if ch.Action != journal.Unchanged {
			e.log.Info("destination", "name", ch.Name, "change", string(ch.Action), "version", ch.Version)
		}
	}
	return nil
}

// background runs something beside the group; the returned function stops it and waits.
func background(e *env, name string, run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("ended", "part", name, "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// startRecorder runs the recorder that all consumers share. It outlives them, but not for ever: a database that is down at the stop
// must not keep the process.
func (c *upCmd) startRecorder(e *env, g *lifecycle.Group, s *session) (*consumers.Recorder, func()) {
	r := consumers.NewRecorder(consumers.RecorderConfig{Store: s.store, Batch: c.Batch, Linger: 2 * time.Millisecond, Wait: 2 * time.Millisecond, Logger: e.log})
	hard, giveUp := context.WithCancel(context.WithoutCancel(e.ctx))
	g.Add("recorder", func(ctx context.Context) error {
		<-ctx.Done()
		time.AfterFunc(2*c.Grace, giveUp)
		return nil
	})
	stop := background(e, "recorder", func(ctx context.Context) error {
		r.Run(ctx, hard)
		return nil
	})
	return r, func() {
		stop()
		giveUp()
	}
}

func (c *upCmd) addRoles(ctx context.Context, g *lifecycle.Group, ops *lifecycle.Ops, mux *http.ServeMux, s *session, in *infra, set []*spec.Spec,
	recorder *consumers.Recorder, log *slog.Logger,
) error {
	if err := addProducer(g, mux, s, in.run.Brokers, log); err != nil {
		return err
	}
	if err := addRelay(g, ops, in.run.DSN, c.Slot, in.run.Brokers, log); err != nil {
		return err
	}
	if err := addCompensator(g, s, in.run.Brokers, log); err != nil {
		return err
	}
	metrics := consumers.NewMetrics(ops.Registry)
	gone, err := retiredDestinations(ctx, s)
	if err != nil {
		return err
	}
	set = append(slices.Clone(set), gone...)
	names := make([]string, len(set))
	for i, file := range set {
		names[i] = file.Name
		err := addConsumer(g, s, file, consumerSettings{
			worker: "up", brokers: in.run.Brokers, batch: c.Batch, grace: c.Grace, lookup: lookup(in.run.Sim), metrics: metrics, recorder: recorder,
			check: ops.Check,
		}, log)
		if err != nil {
			return err
		}
	}
	ops.Registry.MustRegister(consumers.Backlog{Of: s.store.BacklogOf, Destinations: names})
	g.Add("wake-ups", func(ctx context.Context) error {
		s.store.Listen(ctx)
		return nil
	})
	return nil
}

// lookup resolves references as usual, and the addresses of the shipped destinations to the simulated ones where the environment has no
// other. Nobody else's: a simulator that does not know a call answers 404, which would refuse an order, or count as undone.
func lookup(simulated string) spec.Lookup {
	ours := map[string]bool{}
	for _, name := range sim.Destinations() {
		ours[strings.ToUpper(name)+"_URL"] = true
	}
	out := spec.OSLookup()
	env := out.Env
	out.Env = func(name string) (string, bool) {
		if v, ok := env(name); ok || simulated == "" || !ours[name] {
			return v, ok
		}
		return simulated, true
	}
	return out
}

// loadDestinations reads the folder, or the shipped files where the default folder does not exist: the binary runs anywhere.
func loadDestinations(dir string) ([]*spec.Spec, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && strings.HasSuffix(filepath.ToSlash(dir), "consumers/destinations") {
		return shippedDestinations()
	}
	return spec.LoadDir(dir)
}

// sayWhatIsOpen tells, at the end, what goes on at the next start.
func (c *upCmd) sayWhatIsOpen(e *env, s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), grace)
	defer cancel()
	t, err := s.store.Totals(ctx)
	if err != nil {
		e.log.Warn("cannot tell what is still open", "error", err)
		return
	}
	fmt.Fprintf(e.stderr, "stopped: %d sagas open, %d parked; they go on at the next start\n", t.Open, t.Parked)
}
