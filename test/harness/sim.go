package harness

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// Sim is the outside world: the simulated destinations, served by the test's own process, so that they live on whatever is killed.
// Each destination has a listener of its own, so that it alone can refuse connections.
type Sim struct {
	*sim.Sim
	// Client of the simulator's own API.
	Client *sim.Client

	t         testing.TB
	urls      []string
	unchecked bool
}

// StartSim starts the simulated destinations with no random failure and no refusal, changed by settings. At the end of the test
// their ledger has to be without a violation, unless Unchecked was called.
func StartSim(t testing.TB, settings ...sim.Settings) *Sim {
	t.Helper()
	s := StartSimWith(t, sim.Config{Settings: sim.Quiet(), NoSync: true})
	for _, change := range settings {
		s.Change(change)
	}
	return s
}

// StartSimWith is StartSim with a configuration; an empty LedgerPath means a file of the test's own.
func StartSimWith(t testing.TB, cfg sim.Config) *Sim {
	t.Helper()
	if cfg.LedgerPath == "" {
		cfg.LedgerPath = filepath.Join(t.TempDir(), "sim.ledger")
	}
	world, err := sim.Open(cfg)
	require.NoError(t, err)
	transport := &http.Transport{}
	s := &Sim{Sim: world, t: t}
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	listen := func(serve func(ln net.Listener) error) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		served.Go(func() { _ = serve(ln) })
		return "http://" + ln.Addr().String()
	}
	s.Client = sim.NewClient(listen(func(ln net.Listener) error { return world.Serve(ctx, ln) }), &http.Client{Transport: transport})
	for _, name := range sim.Destinations() {
		url := listen(func(ln net.Listener) error { return world.ServeDestination(ctx, name, ln) })
		s.urls = append(s.urls, strings.ToUpper(name)+"_URL="+url)
	}
	t.Cleanup(func() {
		stop()
		if !s.unchecked {
			for _, v := range sim.Check(s.Effects()) {
				t.Errorf("I1: %s", v)
			}
		}
		_ = world.Close()
		transport.CloseIdleConnections()
		served.Wait()
	})
	return s
}

// Unchecked lets the test end with whatever the ledger holds: for cases that break the destinations' promises on purpose.
func (s *Sim) Unchecked() { s.unchecked = true }

// URLs gives the addresses as environment: INVENTORY_URL=http://… and so on.
func (s *Sim) URLs() []string { return append([]string(nil), s.urls...) }

// Add appends faults to the script and gives them back with their ids.
func (s *Sim) Add(faults ...sim.Fault) []sim.Fault {
	s.t.Helper()
	added, err := s.Client.AddFaults(context.Background(), faults...)
	require.NoError(s.t, err)
	return added
}

// Remove ends faults that Add has given back.
func (s *Sim) Remove(faults ...sim.Fault) {
	s.t.Helper()
	for _, f := range faults {
		require.NoError(s.t, s.Client.RemoveFault(context.Background(), f.ID))
	}
}

// Heal ends all faults.
func (s *Sim) Heal() {
	s.t.Helper()
	require.NoError(s.t, s.Client.ClearFaults(context.Background()))
}

// Change changes the named settings.
func (s *Sim) Change(change sim.Settings) {
	s.t.Helper()
	_, err := s.ChangeSettings(change)
	require.NoError(s.t, err)
}

// Calls gives the selected calls in order of arrival, without lookups.
func (s *Sim) Calls(f sim.Filter) []sim.Call {
	s.t.Helper()
	var out []sim.Call
	require.NoError(s.t, s.EachCall(f, func(c sim.Call) bool {
		if c.Direction != sim.Lookup {
			out = append(out, c)
		}
		return true
	}))
	return out
}

// EffectsOf gives the selected effects in order.
func (s *Sim) EffectsOf(f sim.Filter) []sim.Effect {
	var out []sim.Effect
	s.EachEffect(f, func(e sim.Effect) bool {
		out = append(out, e)
		return true
	})
	return out
}

// Kinds lists what happened to an order, in order: "stock_hold", "charge", "refund" …
func (s *Sim) Kinds(aggregate string) []string {
	var out []string
	for _, e := range s.EffectsOf(sim.Filter{Aggregate: aggregate}) {
		out = append(out, string(e.Kind))
	}
	return out
}

// SummaryOf gives what stands of an order.
func (s *Sim) SummaryOf(aggregate string) sim.Summary {
	for _, sum := range sim.Summarize(s.EffectsOf(sim.Filter{Aggregate: aggregate})) {
		return sum
	}
	return sim.Summary{Aggregate: aggregate}
}

// History is an order's calls with how they ended, one a line, for messages.
func (s *Sim) History(aggregate string) string {
	var b strings.Builder
	for _, c := range s.Calls(sim.Filter{Aggregate: aggregate}) {
		end := "in flight"
		if c.Reply != nil {
			end = fmt.Sprintf("status %d, effect %d, replayed %t, fault %q", c.Reply.Status, c.Reply.Effect, c.Reply.Replayed, c.Reply.Fault)
		}
		fmt.Fprintf(&b, "  call %d at %s: %s %s attempt %d, %s %s: %s\n", c.Seq, c.At.Format("15:04:05.000"), c.Destination, c.Direction, c.Attempt,
			c.Method, c.Target, end)
	}
	return b.String()
}
