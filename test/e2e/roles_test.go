//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// cast is every role in a process of its own, and the infrastructure.
type cast struct {
	t        *testing.T
	infra    *harness.Ebb
	producer *harness.Role
	roles    []*harness.Role
	gaveUp   map[string]int // ends that nobody asked for
}

func newCast(t *testing.T, infra *harness.Ebb) *cast {
	c := &cast{t: t, infra: infra, gaveUp: map[string]int{}}
	add := func(name string, args ...string) *harness.Role {
		r := harness.StartRole(t, infra, name, args...)
		c.roles = append(c.roles, r)
		return r
	}
	c.producer = add("producer")
	add("relay")
	add("compensator")
	for _, d := range []string{sim.Inventory, sim.FraudCheck, sim.Shipping, sim.Billing, sim.Billing} {
		add("consumer", "--destination", d)
	}
	return c
}

// keepAlive starts again what has ended, as an orchestrator would. A role may fail to start while the database is away; one that runs
// waits.
func (c *cast) keepAlive() {
	if !c.infra.Running() {
		c.infra.Launch()
	}
	for _, r := range c.roles {
		if !r.Running() {
			c.gaveUp[r.Name()]++
			lines := strings.Split(strings.TrimSpace(r.Output()), "\n")
			c.t.Logf("%s has given up: %s", r.Name(), lines[len(lines)-1])
			if r.Saw("msg=listening") {
				c.t.Errorf("%s was running and must outlive what happens to the others", r.Name())
			}
			r.Launch()
		}
	}
}

// kill ends one of all at random, and starts it again.
func (c *cast) kill(chance *rand.Rand) string {
	if n := chance.IntN(len(c.roles) + 1); n < len(c.roles) {
		c.roles[n].Kill()
		c.roles[n].Launch()
		return c.roles[n].Name()
	}
	if chance.IntN(2) == 0 {
		c.infra.KillWithPostgres()
	} else {
		c.infra.Kill()
	}
	c.infra.Launch()
	return "infra"
}

// freeze stops a consumer for longer than its leases last, in the middle of what it does: others take over, and what it still brings
// is refused unless it is a success (G5).
func (c *cast) freeze(s *harness.Sim, chance *rand.Rand) string {
	consumers := c.roles[3:]
	r := consumers[chance.IntN(len(consumers))]
	r.Pause()
	awaitCalls(c.t, s, 40+chance.IntN(100))
	r.Continue()
	return r.Name()
}

// TestG12KillRoles kills, 30 times, one of the nine processes of a pipeline whose roles run by themselves, and freezes some others.
func TestG12KillRoles(t *testing.T) {
	const kills, freezes = 30, 6
	chance, seed := seeded(t)
	s := world(t, seed)
	infra := harness.StartInfra(t, harness.Options{
		Sim: s, Embedded: true, Env: []string{"E2E_TOKEN=" + canary},
		Destinations: destinations(t, sim.Inventory, sim.FraudCheck, sim.Shipping, sim.Billing),
	})
	c := newCast(t, infra)
	clients := newCrowd(t, harness.OrdersAt(infra, c.producer), 8)
	struck := map[string]int{}
	for n := range kills {
		clients.let(orderCount / (kills + 1))
		awaitCalls(t, s, 1+chance.IntN(60))
		c.keepAlive()
		if n%(kills/freezes) == 0 {
			struck["freeze "+c.freeze(s, chance)]++
		}
		struck[c.kill(chance)]++
	}
	testkit.Eventually(t, func() (bool, string) {
		c.keepAlive()
		_, ok := infra.Addresses()
		return ok, "the infrastructure is not up"
	}, 0)
	clients.finish()
	s.Heal()
	orders := harness.OrdersAt(infra, c.producer)
	const limit = 3 * time.Minute
	hung := time.Now().Add(limit - time.Second)
	testkit.Eventually(t, func() (bool, string) {
		c.keepAlive()
		ok, message := orders.Ended(t.Context(), orderCount)
		if !ok && time.Now().After(hung) {
			message += "\n" + harness.Groups(infra)
		}
		return ok, message
	}, limit)
	t.Logf("seed %d: %d kills and %d freezes: %v; ended without being asked: %v", seed, kills, freezes, struck, c.gaveUp)
	verdict(t, infra, s)
	harness.Canary(t, infra, canary, c.processes()...)
	c.rerun(s)
	verdict(t, infra, s)
}

func (c *cast) processes() []*harness.Process {
	out := make([]*harness.Process, len(c.roles))
	for i, r := range c.roles {
		out[i] = r.Process
	}
	return out
}

// rerun is I5: all roles stop, every offset is forgotten, everything is read again, and nothing comes of it.
func (c *cast) rerun(s *harness.Sim) {
	harness.AwaitCaughtUp(c.t, c.infra)
	before := s.Stats()
	for _, r := range c.roles {
		if code := r.Stop(); code != 0 {
			c.t.Errorf("%s ended with code %d after SIGTERM", r.Name(), code)
		}
	}
	harness.ForgetOffsets(c.t, c.infra)
	for _, r := range c.roles {
		r.Launch()
	}
	harness.AwaitCaughtUp(c.t, c.infra)
	after := s.Stats()
	if before.Calls != after.Calls || before.Effects != after.Effects {
		c.t.Errorf("I5: reading everything again: %s before, %s after", fmt.Sprint(before), fmt.Sprint(after))
	}
}
