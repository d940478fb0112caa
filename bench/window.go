package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ebbline/ebb/bench/probe"
)

// window is what one contender did between two moments.
type window struct {
	From    time.Time `json:"from"`
	Seconds float64   `json:"seconds"`
	// Done counts orders or records that were finished in the window.
	Done      int     `json:"done"`
	PerSecond float64 `json:"perSecond"`
	// CPU seconds per 1,000 finished.
	CPU cost `json:"cpuSecondsPer1000"`
	// Transactions of the contender's database per finished, those of the clients and those that were rolled back included.
	Transactions float64 `json:"transactionsPerFinished"`
	// Others is how many cores the rest of the machine used meanwhile: above a few hundredths, trust the ratios only.
	Others float64 `json:"coresUsedByOthers"`
	// Refused counts, of the orders in the run, those that were unwound.
	Refused int `json:"refused"`
}

// cost is processor time, split by who spent it.
type cost struct {
	PostgreSQL float64            `json:"postgresql"`
	Kinds      map[string]float64 `json:"postgresqlByProcess"`
	Ebb        float64            `json:"ebb"`   // broker, relay and every role
	Bench      float64            `json:"bench"` // the peers' loops; for Ebb, the clients
	API        float64            `json:"api"`
}

func (c cost) total() float64 { return c.PostgreSQL + c.Ebb + c.Bench + c.API }

// until is the end of the window.
func (w window) until() time.Time { return w.From.Add(seconds(w.Seconds)) }

// spent is what a window took.
type spent struct {
	cpu          probe.CPU
	transactions int64
}

// observe waits out a window that begins now and tells what it took. ebb is nil for peers.
func (b *bench) observe(ctx context.Context, length float64, db *database, e *ebb) (window, spent, error) {
	processes := map[string]int{"bench": os.Getpid(), "api": b.api.cmd.Process.Pid}
	if e != nil {
		processes["ebb"] = e.cmd.Process.Pid
	}
	earlier, err := db.transactions(ctx)
	if err != nil {
		return window{}, spent{}, err
	}
	before, from := probe.ReadCPU(b.server.postmaster, processes), time.Now()
	err = sleep(ctx, seconds(length))
	w := window{From: from, Seconds: time.Since(from).Seconds()}
	out := spent{cpu: probe.ReadCPU(b.server.postmaster, processes).Minus(before)}
	if err != nil {
		return w, out, err
	}
	later, err := db.transactions(ctx)
	out.transactions = later - earlier
	return w, out, err
}

// finish adds what the contender's tables say and relates to it what the window took.
func (w *window) finish(done int, took spent) {
	spent := took.cpu
	w.Done = done
	w.PerSecond = float64(done) / w.Seconds
	p := spent.Processes
	w.Others = max(spent.Machine-spent.PostgreSQL-p["ebb"]-p["bench"]-p["api"], 0) / w.Seconds
	if done == 0 {
		return
	}
	w.Transactions = float64(took.transactions) / float64(done)
	per := 1000 / float64(done)
	w.CPU = cost{PostgreSQL: spent.PostgreSQL * per, Ebb: p["ebb"] * per, Bench: p["bench"] * per, API: p["api"] * per, Kinds: map[string]float64{}}
	for kind, v := range spent.Kinds {
		w.CPU.Kinds[kind] = v * per
	}
}

// count gives the sagas that ended in the window, and notes how many of the run were unwound.
func (e *ebb) count(ctx context.Context, w *window) (int, error) {
	var done int
	err := e.db.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE updated_at >= $1 AND updated_at < $2), count(*) FILTER (WHERE state = 'COMPENSATED')
FROM ebb.sagas WHERE state IN ('COMPLETED', 'COMPENSATED')`, w.From, w.until()).Scan(&done, &w.Refused)
	if err != nil {
		return 0, fmt.Errorf("count the sagas of the window: %w", err)
	}
	return done, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// sleep waits for d unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
