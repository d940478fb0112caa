package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Relay streams one slot into Kafka. Make it with New, start it with Run.
type Relay struct {
	cfg   Config
	rules *rules

	mu     sync.Mutex
	health health
}

// health is what Healthy and Progress tell about.
type health struct {
	streaming bool
	last      error // why there is no stream
	progress  Progress
	at        time.Time // of progress
}

// New checks the configuration. It connects to nothing.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	rules, mappingErr := cfg.Mapping.compile()
	if err := errors.Join(cfg.validate(), mappingErr); err != nil {
		return nil, err
	}
	return &Relay{cfg: cfg, rules: rules, health: health{last: errors.New("not started")}}, nil
}

// Run makes a relay and runs it.
func Run(ctx context.Context, cfg Config) error {
	r, err := New(cfg)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// Run streams until ctx ends or an error shows that going on would lose or falsify events; see the package comment for
// which. After ctx has ended it waits up to Config.Grace for what is on its way, confirms it and returns nil.
// Connection losses on either side are retried for ever. A relay may be run again after Run has returned.
func (r *Relay) Run(ctx context.Context) error {
	retry := backoff{least: 100 * time.Millisecond, most: 5 * time.Second}
	for {
		began := time.Now()
		err := r.runEngine(ctx, &retry)
		if ctx.Err() != nil && !isTerminal(err) {
			r.setDown(errors.New("stopped"))
			return nil
		}
		r.setDown(err)
		if isTerminal(err) {
			return err
		}
		if time.Since(began) > time.Minute {
			retry.reset()
		}
		r.cfg.Logger.WarnContext(ctx, "relay: publishing ended, trying again", "slot", r.cfg.Slot, "error", err)
		retry.wait(ctx)
	}
}

// runEngine makes the Kafka clients and streams with them over as many connections to PostgreSQL as it takes. It ends
// with the first record that could not be published: what is behind it can then only be sent from the slot again.
func (r *Relay) runEngine(ctx context.Context, retry *backoff) error {
	e, err := newEngine(ctx, r)
	if err != nil {
		return err
	}
	defer e.close()
	for {
		err := e.stream(ctx)
		if failed := e.failure(); failed != nil {
			return failed
		}
		if ctx.Err() != nil || isTerminal(err) {
			return err
		}
		r.setDown(err)
		if e.progressed() {
			retry.reset()
		}
		r.report(ctx, err)
		retry.wait(ctx)
	}
}

func (r *Relay) report(ctx context.Context, err error) {
	if r.cfg.Hooks.OnReconnect != nil {
		r.cfg.Hooks.OnReconnect(err)
	}
	var busy *slotBusyError
	if errors.As(err, &busy) {
		r.cfg.Logger.WarnContext(ctx, "relay: the slot is in use, waiting", "slot", r.cfg.Slot, "holder_pid", busy.holder)
		return
	}
	r.cfg.Logger.WarnContext(ctx, "relay: the stream ended, connecting again", "slot", r.cfg.Slot, "error", err)
}

// Healthy is nil while rows flow, or could. Else it says what stands in the way: no stream, a silent server, or records
// that Kafka does not acknowledge.
func (r *Relay) Healthy() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	switch {
	case !h.streaming:
		return fmt.Errorf("relay of slot %s is not streaming: %w", r.cfg.Slot, h.last)
	case h.progress.Oldest > r.cfg.StallAfter:
		return fmt.Errorf("relay of slot %s: Kafka has not acknowledged %d records, the oldest waits since %s; check that "+
			"their topics exist and the brokers are up", r.cfg.Slot, h.progress.Records, h.progress.Oldest.Round(time.Second))
	case time.Since(h.at) > r.cfg.StallAfter+2*r.cfg.StatusInterval:
		return fmt.Errorf("relay of slot %s has not reported progress since %s", r.cfg.Slot, h.at.UTC().Format(time.RFC3339))
	}
	return nil
}

// Progress gives the last known position of the stream.
func (r *Relay) Progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health.progress
}

func (r *Relay) setDown(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.streaming, r.health.last = false, err
}

func (r *Relay) setProgress(p Progress) {
	r.mu.Lock()
	r.health.streaming, r.health.progress, r.health.at = true, p, time.Now()
	r.mu.Unlock()
	if r.cfg.Hooks.OnProgress != nil {
		r.cfg.Hooks.OnProgress(p)
	}
}

// backoff doubles from least to most, with jitter.
type backoff struct {
	least, most time.Duration
	next        time.Duration
}

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) wait(ctx context.Context) {
	b.next = min(max(2*b.next, b.least), b.most)
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
