//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

func TestMain(m *testing.M) {
	code := testkit.Run(m)
	harness.Clean()
	os.Exit(code)
}

// orderCount is how many orders each test has.
const orderCount = 300

// canary is a credential that may be nowhere but in requests.
const canary = "canary-c0ffee-5f3d2b"

// seeded gives the run's randomness and prints its seed.
func seeded(t *testing.T) (*rand.Rand, uint64) {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	if text := os.Getenv("EBB_E2E_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "EBB_E2E_SEED")
	}
	t.Logf("EBB_E2E_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1)), seed
}

// destinations are the shipped files with short times, and a credential. A call may take 1 s, so that a hang of 1.5 s outlives it.
func destinations(t *testing.T, names ...string) string {
	t.Helper()
	files := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(harness.ShippedDestinations(t) + "/" + name + ".yaml")
		require.NoError(t, err)
		quick := strings.NewReplacer("timeout: 5s", "timeout: 1s", "base: 200ms, max: 10s", "base: 50ms, max: 1s", "cap: 10s", "cap: 1s", "fallback: 2s, ", "").
			Replace(string(text))
		require.NotEqual(t, string(text), quick)
		files[name] = quick + "auth: { bearer: \"${env:E2E_TOKEN}\" }\n"
	}
	return harness.WriteDestinations(t, files)
}

// world starts destinations that refuse some orders for good, with their ledger on disk before each reply.
func world(t *testing.T, seed uint64) *harness.Sim {
	t.Helper()
	settings := sim.Quiet()
	settings.Refusals = map[string]sim.Rate{sim.Inventory: 300, sim.FraudCheck: 300, sim.Shipping: 300, sim.Billing: 600, sim.Notifications: 0}
	settings.Latency = map[string]sim.Latency{"*": {Min: time.Millisecond, Max: 20 * time.Millisecond}}
	s := harness.StartSimWith(t, sim.Config{Settings: settings, Seed: seed + 1})
	s.Add(weather(seed)...)
	return s
}

// weather is what goes wrong by chance at every destination, in both directions: about one call in three.
func weather(seed uint64) []sim.Fault {
	const long = sim.Duration(1500 * time.Millisecond) // longer than a call may take
	faults := []sim.Fault{
		{Action: sim.Lose, Probability: 800},
		{Action: sim.Unavailable, Probability: 500},
		{Action: sim.Unavailable, Probability: 200, RetryAfter: 1},
		{Action: sim.Reset, Probability: 300},
		{Action: sim.StallBody, Probability: 300},
		{Action: sim.Hang, At: sim.HangBefore, Duration: long, Probability: 300},
		{Action: sim.Hang, At: sim.HangDuring, Duration: long, Probability: 300},
		{Action: sim.Hang, At: sim.HangAfter, Duration: long, Probability: 300},
		{Action: sim.ReplyWith, Status: 500, Probability: 200},
	}
	for i := range faults {
		faults[i].Seed = seed + uint64(i)
	}
	return faults
}

// order is the n-th: its customer is refused at one destination each, every eighth order; the others as chance has it.
func order(n int) harness.Order {
	refusing := []string{sim.Inventory, sim.FraudCheck, sim.Shipping, sim.Billing}
	o := harness.Order{Customer: fmt.Sprintf("customer-%d", n), Amount: fmt.Sprintf("%d.%02d", 5+n, n%100)}
	if n%8 == 0 {
		o.Customer += "-refuse-" + refusing[n/8%len(refusing)]
	}
	if n%3 == 0 {
		o.Shipping = "international"
	}
	return o
}

// crowd are clients that create, cancel and ship orders, and try again under their keys when the API is away.
type crowd struct {
	t       *testing.T
	orders  *harness.Orders
	ctx     context.Context
	stop    context.CancelFunc
	tickets chan struct{} // one per order that may be created
	next    atomic.Int64
	all     sync.WaitGroup
	ids     sync.Map // number → id
}

func newCrowd(t *testing.T, orders *harness.Orders, clients int) *crowd {
	c := &crowd{t: t, orders: orders, tickets: make(chan struct{}, orderCount)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for range clients {
		c.all.Go(c.client)
	}
	t.Cleanup(func() {
		c.stop()
		c.all.Wait()
	})
	return c
}

// let allows n more orders, as long as there are any.
func (c *crowd) let(n int) {
	for range n {
		select {
		case c.tickets <- struct{}{}:
		default:
			return
		}
	}
}

// finish lets the rest in and waits until all clients are done.
func (c *crowd) finish() {
	c.let(orderCount)
	c.all.Wait()
}

func (c *crowd) client() {
	for {
		select {
		case <-c.tickets:
		case <-c.ctx.Done():
			return
		}
		n := int(c.next.Add(1))
		if n > orderCount {
			return
		}
		c.life(n)
	}
}

// life is what a customer does: create; every seventh cancels an order of a moment ago, every fifth has one of longer ago shipped.
func (c *crowd) life(n int) {
	c.insist(fmt.Sprintf("create order %d", n), func() error {
		id, err := c.orders.CreateOnce(c.ctx, harness.ClientKey("order", n), order(n))
		c.ids.Store(n, id)
		return err
	})
	if n%7 == 0 {
		c.about(n-n%3, func(id string) error { return c.orders.CancelOnce(c.ctx, harness.ClientKey("cancel", n), id) })
	}
	if n%5 == 0 {
		c.about(n-40, func(id string) error {
			_, err := c.orders.Try(c.ctx, http.MethodPut, "/api/orders/"+id+"/status", harness.ClientKey("ship", n), map[string]any{"status": "SHIPPED"})
			return err
		})
	}
}

// about does something to an order that may not be there, or in a state that forbids it.
func (c *crowd) about(n int, do func(id string) error) {
	id, ok := c.ids.Load(n)
	if !ok || id == "" {
		return
	}
	c.insist(fmt.Sprintf("change order %d", n), func() error {
		err := do(id.(string))
		var api *harness.APIError
		if errors.As(err, &api) && api.Status == http.StatusConflict {
			return nil
		}
		return err
	})
}

// insist tries until there is an answer.
func (c *crowd) insist(what string, try func() error) {
	for {
		err := try()
		var api *harness.APIError
		switch {
		case err == nil:
			return
		case errors.As(err, &api) && api.Status != http.StatusServiceUnavailable:
			c.t.Errorf("%s: %v", what, err)
			return
		}
		wait := time.NewTimer(20 * time.Millisecond)
		select {
		case <-c.ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// awaitCalls waits until the destinations have seen so many more calls, or nothing has moved for long: then there is nothing to be
// in the middle of.
func awaitCalls(t *testing.T, s *harness.Sim, more int) {
	t.Helper()
	target := s.Stats().Calls + more
	give := time.Now().Add(8 * time.Second)
	testkit.Eventually(t, func() (bool, string) {
		calls := s.Stats().Calls
		return calls >= target || time.Now().After(give), fmt.Sprintf("%d calls of %d", calls, target)
	}, 0)
}

// awaitTakeover waits until leases of the last run have run out, or there seem to be none.
func awaitTakeover(t *testing.T, p interface{ Saw(text string) bool }) {
	t.Helper()
	give := time.Now().Add(8 * time.Second)
	testkit.Eventually(t, func() (bool, string) { return p.Saw("leases ran out") || time.Now().After(give), "no lease ran out" }, 0)
}

// verdict is what holds at the end of every run, whatever was killed.
func verdict(t *testing.T, e *harness.Ebb, s *harness.Sim) {
	t.Helper()
	harness.Oracle(t, e, s)
	// Inventory, shipping and billing wait for each other in this order, so that no undo may overtake another, held up or not (G7).
	harness.LIFO(t, s)
	tally := harness.Count(t, e, s)
	t.Log(tally)
	require.Equal(t, orderCount, tally.Orders)
	require.Zero(t, tally.Attention, "the destinations honour their keys: nobody has to be asked")
	for _, sum := range sim.Summarize(s.Effects()) {
		require.LessOrEqual(t, sum.Charges.Live, 1, "order %s", sum.Aggregate)
	}
	require.Positive(t, tally.Confirmed)
	require.Positive(t, tally.Rejected)
	require.Positive(t, tally.Cancelled)
	require.Positive(t, tally.Lost)
	require.Positive(t, tally.Undone)
}
