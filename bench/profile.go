package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ebbline/ebb/bench/probe"
)

// profiled is where the time of four-step orders goes. Its runs are not those whose figures are compared.
type profiled struct {
	Folder string `json:"folder"`
	// Top is the output of go tool pprof: functions by their own time, then with what they call.
	Top        string `json:"top"`
	Cumulative string `json:"cumulative"`
	// Waits are samples of PostgreSQL's sessions in the same run.
	Waits probe.Waits `json:"waits"`
	// Profiled is the window of the profile; Counted that of the run whose wire was counted.
	Profiled window `json:"profiled"`
	Counted  window `json:"counted"`
	// PerSaga are transactions and messages per saga that ended.
	PerSaga perSaga `json:"perSaga"`
}

type perSaga struct {
	Open         int     `json:"open"`         // orders at once, which decides how large the batches are
	Transactions float64 `json:"transactions"` // of Ebb and of the clients, of which each order takes one
	Trips        float64 `json:"roundTrips"`   // this and the rest: of Ebb alone
	Statements   float64 `json:"statements"`
	Parses       float64 `json:"parses"`
	Bytes        float64 `json:"bytesSent"`
}

// profile makes the two runs.
func (b *bench) profile(ctx context.Context) (*profiled, error) {
	if err := os.MkdirAll(b.flags.Profile, 0o755); err != nil {
		return nil, err
	}
	p := &profiled{Folder: b.flags.Profile}
	b.log.Info("profile")
	if err := b.profileCPU(ctx, p); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	b.log.Info("round trips")
	if err := b.countWire(ctx, p); err != nil {
		return nil, fmt.Errorf("round trips: %w", err)
	}
	return p, nil
}

// profileCPU profiles ebb while PostgreSQL's sessions are sampled.
func (b *bench) profileCPU(ctx context.Context, p *profiled) error {
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	return b.withOrders(ctx, ebbOptions{partitions: 1, pprof: addr}, func(o *ordersRun) error {
		sampling, stop := context.WithCancel(ctx)
		defer stop()
		var g errgroup.Group
		cpu := filepath.Join(p.Folder, "ebb.cpu.pprof")
		g.Go(func() error {
			defer stop()
			if err := o.shop.flow.started(ctx, o.ebb); err != nil {
				return err
			}
			if err := sleep(ctx, seconds(b.warm())); err != nil {
				return err
			}
			return download(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", addr, max(int(b.flags.Seconds), 1)), cpu)
		})
		g.Go(func() (err error) {
			if err := o.shop.flow.started(ctx, o.ebb); err != nil {
				return err
			}
			p.Waits, err = probe.SampleWaits(sampling, b.server.pg.DSN("postgres"), o.ebb.db.name)
			return err
		})
		p.Profiled, err = o.saturated(ctx)
		if err := errors.Join(err, g.Wait()); err != nil {
			return err
		}
		if err := download(ctx, "http://"+addr+"/debug/pprof/allocs", filepath.Join(p.Folder, "ebb.allocs.pprof")); err != nil {
			return err
		}
		p.Top, err = b.top(ctx, cpu)
		if err != nil {
			return err
		}
		p.Cumulative, err = b.top(ctx, cpu, "-cum")
		return err
	})
}

// countWire runs Ebb behind a proxy that counts what it sends.
func (b *bench) countWire(ctx context.Context, p *profiled) error {
	wire, err := probe.NewWire(ctx, b.server.addr())
	if err != nil {
		return err
	}
	passing, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return wire.Run(passing) })
	err = b.withOrders(ctx, ebbOptions{partitions: 1, postgres: wire.Addr()}, func(o *ordersRun) error {
		messages, transactions := wire.Counts(), int64(0)
		transactions, err := o.ebb.db.transactions(ctx)
		if err != nil {
			return err
		}
		if p.Counted, err = o.saturated(ctx); err != nil {
			return err
		}
		// Sessions report their transactions at most once a second.
		if err := sleep(ctx, seconds(1.5)); err != nil {
			return err
		}
		after, err := o.ebb.db.transactions(ctx)
		if err != nil {
			return err
		}
		n, sent := float64(o.shop.flow.ended.Load()), wire.Counts().Minus(messages)
		p.PerSaga = perSaga{
			Open: b.flags.InFlight, Transactions: float64(after-transactions) / n, Trips: float64(sent.Trips) / n, Statements: float64(sent.Statements) / n,
			Parses: float64(sent.Parses) / n, Bytes: float64(sent.Bytes) / n,
		}
		return nil
	})
	stop()
	return errors.Join(err, g.Wait())
}

// top lists the first functions of a profile.
func (b *bench) top(ctx context.Context, profile string, flags ...string) (string, error) {
	args := append([]string{"tool", "pprof", "-top", "-nodecount=40"}, flags...)
	out, err := exec.CommandContext(ctx, "go", append(args, b.binary, profile)...).Output()
	if err != nil {
		return "", fmt.Errorf("go tool pprof: %w", err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}

func freeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String(), nil
}

func download(ctx context.Context, url, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s gave status %d", url, resp.StatusCode)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
