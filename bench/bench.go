package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/ebbline/ebb/bench/probe"
)

// bench is one run of everything.
type bench struct {
	flags  flags
	dir    string // data of the run
	server *server
	api    *apiProcess
	binary string
	log    *slog.Logger
}

func run(ctx context.Context, f flags) (err error) {
	started := time.Now()
	if f.Data != "" {
		if err := os.MkdirAll(f.Data, 0o755); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(f.Data, "ebb-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{flags: f, dir: dir, binary: f.Ebb, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	defer b.close(ctx)
	report, err := b.measure(ctx)
	if err != nil {
		return err
	}
	report.Took = time.Since(started).Seconds()
	if err := report.print(os.Stdout); err != nil {
		return err
	}
	if f.JSON != "" {
		return report.save(f.JSON)
	}
	return nil
}

// prepare builds and starts what all rounds use.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.binary == "" {
		b.log.Info("building ebb")
		if b.binary, err = build(ctx, b.dir); err != nil {
			return err
		}
	}
	if b.server, err = startServer(ctx, b.dir); err != nil {
		return err
	}
	if b.api, err = startAPI(b.flags); err != nil {
		b.server.stop(ctx)
	}
	return err
}

func (b *bench) close(ctx context.Context) {
	b.api.stop()
	b.server.stop(ctx)
}

// measure runs the parts that are asked for.
func (b *bench) measure(ctx context.Context) (*report, error) {
	machine, err := probe.Look(b.dir)
	if err != nil {
		return nil, err
	}
	r := &report{Machine: machine, PostgreSQL: b.server.version, Quick: b.flags.Quick, Settings: settingsOf(b.flags), At: time.Now().UTC()}
	if b.flags.wants("orders") {
		if r.Orders, r.HalfLoad, err = b.compareOrders(ctx); err != nil {
			return nil, err
		}
	}
	for _, p := range []struct {
		part       string
		partitions int
		into       **comparison
	}{{"one", 1, &r.One}, {"twelve", 12, &r.Twelve}} {
		if !b.flags.wants(p.part) {
			continue
		}
		if *p.into, err = b.compareRecords(ctx, p.partitions); err != nil {
			return nil, err
		}
	}
	if b.flags.wants("profile") {
		if r.Profile, err = b.profile(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// compareOrders alternates Ebb and the plain loop; the last Ebb is also looked at under half the load.
func (b *bench) compareOrders(ctx context.Context) (*comparison, *halfLoad, error) {
	c := &comparison{
		Name: "four-step orders", Ebb: side{Name: "Ebb"},
		Peer: side{Name: fmt.Sprintf("plain loop, %d workers, two commits a step, no Kafka", b.flags.Workers)},
	}
	var half *halfLoad
	for round := 1; round <= b.flags.Rounds; round++ {
		b.log.Info("four-step orders", "round", round, "of", b.flags.Rounds)
		err := b.withOrders(ctx, ebbOptions{partitions: 1}, func(o *ordersRun) error {
			w, err := o.saturated(ctx)
			if err != nil {
				return err
			}
			c.Ebb.Windows = append(c.Ebb.Windows, w)
			if round < b.flags.Rounds {
				return nil
			}
			rate := b.flags.Rate
			if rate == 0 {
				rate = c.Ebb.rate() / 2
			}
			half, err = o.halfLoad(ctx, rate)
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("four-step orders, Ebb: %w", err)
		}
		w, err := b.plainRound(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("four-step orders, plain loop: %w", err)
		}
		c.Peer.Windows = append(c.Peer.Windows, w)
	}
	return c, half, nil
}

// compareRecords alternates Ebb and a consumer with a goroutine per partition on the one-destination load.
func (b *bench) compareRecords(ctx context.Context, partitions int) (*comparison, error) {
	name := "goroutine per partition"
	if partitions == 1 {
		name = "serial consumer"
	}
	c := &comparison{
		Name: fmt.Sprintf("one destination, %d keys, partitions: %d", keys, partitions),
		Ebb:  side{Name: "Ebb"}, Peer: side{Name: name},
	}
	for round := 1; round <= b.flags.Rounds; round++ {
		b.log.Info("one destination", "partitions", partitions, "round", round, "of", b.flags.Rounds)
		w, err := b.ebbRecordsRound(ctx, partitions)
		if err != nil {
			return nil, fmt.Errorf("%s, Ebb: %w", c.Name, err)
		}
		c.Ebb.Windows = append(c.Ebb.Windows, w)
		if w, err = b.peerRecordsRound(ctx, partitions); err != nil {
			return nil, fmt.Errorf("%s, peer: %w", c.Name, err)
		}
		c.Peer.Windows = append(c.Peer.Windows, w)
	}
	return c, nil
}

// warm is how long a contender runs before its window begins.
func (b *bench) warm() float64 { return min(b.flags.Seconds/4, 2) }
