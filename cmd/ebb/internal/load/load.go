package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ebbline/ebb/cmd/ebb/internal/orderapi"
)

// Orders is the order API.
type Orders interface {
	Create(ctx context.Context, key string, n orderapi.New) (orderapi.Order, error)
	Cancel(ctx context.Context, key string, id int64, reason string) (orderapi.Order, error)
	List(ctx context.Context, f orderapi.Filter) (orderapi.Page, error)
}

// Config of a load.
type Config struct {
	// Orders is where they are sent. Required.
	Orders Orders
	// Run makes client keys and customers different from those of other loads. Required.
	Run string
	// Rate is orders per second. Zero means as fast as the workers go.
	Rate int
	// Count and For bound the load, whichever comes first; zero means that the other does. One is required.
	Count int
	For   time.Duration
	// Mix of kinds. Nil means domestic orders only.
	Mix Mix
	// Workers is how many orders may be on their way at a time. Zero means 64.
	Workers int
	// Settle is how long the ends are waited for after the last order. Zero means not at all.
	Settle time.Duration
	// Look is how often ends are looked for. Zero means 200 ms.
	Look time.Duration
	// RefuseAt names the destinations that refuse the refused orders. Required if the mix has any.
	RefuseAt []string
}

func (c Config) withDefaults() Config {
	if c.Mix == nil {
		c.Mix = Mix{Domestic: 1}
	}
	if c.Workers == 0 {
		c.Workers = 64
	}
	if c.Look == 0 {
		c.Look = 200 * time.Millisecond
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	for _, p := range []struct {
		bad  bool
		what string
	}{
		{c.Orders == nil, "Orders is nil"},
		{c.Run == "", "Run is empty"},
		{c.Rate < 0 || c.Rate > 1_000_000, "Rate is not from 0 to 1,000,000"},
		{c.Count < 0 || c.For < 0 || c.Settle < 0 || c.Look < 0, "Count, For, Settle or Look is negative"},
		{c.Count == 0 && c.For == 0, "Count and For are both 0: the load would not end"},
		{c.Workers < 0 || c.Workers > 10_000, "Workers is not from 1 to 10,000"},
		{c.Mix.sum() == 0, "Mix has no shares"},
		{c.Mix[Refused] > 0 && len(c.RefuseAt) == 0, "RefuseAt is empty, but the mix has refused orders"},
	} {
		if p.bad {
			problems = append(problems, errors.New("load: Config."+p.what))
		}
	}
	return errors.Join(problems...)
}

// job is one order to be sent.
type job struct {
	n    int // from 1
	kind Kind
	due  time.Time
}

// Run sends the load and gives the report. The error is about the configuration only.
func Run(ctx context.Context, cfg Config) (Report, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return Report{}, err
	}
	r := &run{cfg: cfg, watch: newWatcher(cfg.Orders), failed: map[string]int{}}
	begun := time.Now()
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range cfg.Workers {
		workers.Go(func() {
			for j := range jobs {
				r.send(ctx, j)
			}
		})
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var watcher sync.WaitGroup
	watcher.Go(func() { r.watch.run(watching, cfg.Look) })
	sent := cfg.schedule(ctx, begun, jobs)
	close(jobs)
	workers.Wait()
	took := time.Since(begun)
	r.watch.await(ctx, cfg.Settle)
	stopWatching()
	watcher.Wait()
	return r.report(sent, took), nil
}

// schedule hands out the orders when they are due and gives their number.
func (c Config) schedule(ctx context.Context, begun time.Time, jobs chan<- job) int {
	pick := picker{mix: c.Mix}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		due := time.Now()
		if c.Rate > 0 {
			due = begun.Add(time.Duration(n) * time.Second / time.Duration(c.Rate))
		}
		if c.Count > 0 && n == c.Count || c.For > 0 && due.Sub(begun) >= c.For {
			return n
		}
		timer.Reset(max(time.Until(due), 0))
		select {
		case <-ctx.Done():
			return n
		case <-timer.C:
		}
		select {
		case <-ctx.Done():
			return n
		case jobs <- job{n + 1, pick.next(), due}:
		}
	}
}

// run is a load that goes on.
type run struct {
	cfg   Config
	watch *watcher

	mu     sync.Mutex
	accept []time.Duration
	failed map[string]int
}

func (r *run) send(ctx context.Context, j job) {
	key := fmt.Sprintf("load-%s-%d", r.cfg.Run, j.n)
	o, err := r.cfg.Orders.Create(ctx, key, r.cfg.order(j))
	took := time.Since(j.due)
	r.mu.Lock()
	if err == nil {
		r.accept = append(r.accept, took)
	} else {
		r.failed[reason(err)]++
	}
	r.mu.Unlock()
	if err != nil {
		return
	}
	r.watch.add(o.ID, j.kind != Cancelled)
	if j.kind != Cancelled {
		return
	}
	if _, err := r.cfg.Orders.Cancel(ctx, key+"-cancel", o.ID, "load"); err != nil {
		r.mu.Lock()
		r.failed["cancel: "+reason(err)]++
		r.mu.Unlock()
	}
}

func (c Config) order(j job) orderapi.New {
	n := orderapi.New{
		CustomerID: fmt.Sprintf("load-%s-%d", c.Run, j.n), Currency: "USD", ShippingType: string(Domestic),
		TotalAmount: orderapi.Money(fmt.Sprintf("%d.%02d", 1+j.n%500, j.n%100)),
	}
	switch j.kind {
	case International:
		n.ShippingType = string(International)
	case Refused:
		n.CustomerID += "-refuse-" + c.RefuseAt[j.n%len(c.RefuseAt)]
	}
	return n
}

// reason groups errors: the first line, without what differs from one to the next.
func reason(err error) string {
	var bad *orderapi.Error
	if errors.As(err, &bad) {
		return fmt.Sprintf("answered %d", bad.Status)
	}
	var gone *orderapi.UnreachableError
	if errors.As(err, &gone) {
		return "no answer"
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
