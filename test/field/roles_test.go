package field

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// apart is a stack of which every role is a process of its own, so that one of them can be frozen or restarted alone.
type apart struct {
	*stack
	producer    *harness.Role
	relay       *harness.Role
	compensator *harness.Role
	consumers   map[string][]*harness.Role
}

// startApart starts one process per role and destination; more come by consumer.
func startApart(t *testing.T, f *fixture, partitions int) *apart {
	t.Helper()
	s := &stack{t: t, dir: f.write(t), sim: harness.StartSim(t)}
	s.ebb = harness.StartInfra(t, harness.Options{
		Sim: s.sim, Destinations: s.dir, Partitions: partitions, Env: []string{"EBB_LOG_LEVEL=debug", "FIELD_TOKEN=" + canary},
	})
	a := &apart{stack: s, consumers: map[string][]*harness.Role{}}
	a.producer, a.relay, a.compensator = a.role("producer"), a.role("relay"), a.role("compensator")
	for name := range f.files {
		a.consumer(name)
	}
	a.orders = harness.OrdersAt(s.ebb, a.producer)
	for _, r := range a.all() {
		r.AwaitReady()
	}
	return a
}

// role launches a role with a grace of a second.
func (a *apart) role(name string, args ...string) *harness.Role {
	r := harness.NewRole(a.t, a.ebb, name, append(args, "--grace", "1s")...)
	a.others = append(a.others, r.Process)
	r.Launch()
	return r
}

// consumer launches one more process of a destination.
func (a *apart) consumer(destination string) *harness.Role {
	r := a.role("consumer", "--destination", destination)
	a.consumers[destination] = append(a.consumers[destination], r)
	return r
}

func (a *apart) all() []*harness.Role {
	out := []*harness.Role{a.producer, a.relay, a.compensator}
	for _, list := range a.consumers {
		out = append(out, list...)
	}
	return out
}

// awaitMembers waits until a destination's group is stable with so many members.
func (a *apart) awaitMembers(destination string, n int) {
	a.t.Helper()
	admin := a.admin()
	group := harness.Group(destination)
	a.until(func() (bool, string) {
		groups, err := admin.DescribeGroups(a.t.Context(), group)
		if err != nil {
			return false, err.Error()
		}
		g := groups[group]
		return g.State == "Stable" && len(g.Members) == n, fmt.Sprintf("group %s is %s with %d members", group, g.State, len(g.Members))
	})
}

// workerOf is how a consumer process names itself in claims.
func workerOf(r *harness.Role) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, r.PID())
}

// once checks that an order was done once at a destination, in so many calls under one key.
func (s *stack) once(id, destination string, calls int) {
	s.t.Helper()
	s.sameCalls(id, destination, sim.Do, calls)
	require.Len(s.t, s.effects(id, destination, sim.Do), 1)
}

// alike is G4 for a whole run: all calls under one key are the same request. It gives their number by key.
func (s *stack) alike() map[string]int {
	s.t.Helper()
	first, n := map[string]string{}, map[string]int{}
	for _, c := range s.sim.Calls(sim.Filter{}) {
		require.Equal(s.t, []string{c.Key}, c.Header.Values("Idempotency-Key"))
		request := c.Method + " " + c.Target + "\n" + string(c.Body)
		if n[c.Key] == 0 {
			first[c.Key] = request
		}
		require.Equal(s.t, first[c.Key], request)
		n[c.Key]++
	}
	return n
}

// confirmed waits until all orders are CONFIRMED, each with so many effects under keys of their own and nothing undone.
func (s *stack) confirmed(effects int) {
	s.t.Helper()
	s.orders.AwaitAllEnded(s.n)
	require.Equal(s.t, fmt.Sprint(s.n), s.text(`SELECT count(*)::text FROM orders.orders WHERE status = 'CONFIRMED' AND attention IS NULL`))
	byOrder, byKey := map[string]int{}, map[string]int{}
	for _, e := range s.sim.Effects() {
		require.Equal(s.t, sim.Do, e.Direction)
		byOrder[e.Aggregate]++
		byKey[e.Key]++
		require.Equal(s.t, 1, byKey[e.Key])
	}
	require.Len(s.t, byOrder, s.n)
	for id, n := range byOrder {
		require.Equal(s.t, effects, n, "order %s", id)
	}
}
