package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbline/ebb/sim/internal/appendlog"
)

// ErrClosed is the cause of what a closed simulator refuses to do.
var ErrClosed = errors.New("sim: closed")

// Sim is a running set of simulated destinations. It is safe for concurrent use.
type Sim struct {
	cfg       Config
	log       *appendlog.Log
	logger    *slog.Logger
	endpoints []endpoint
	settings  atomic.Pointer[Settings]
	script    script
	doors     doors
	admin     http.Handler

	// flow is held shared by each call to a destination, and alone by Reset and
	// Close, which first let the waiting calls go through interrupt.
	flow      sync.RWMutex
	interrupt atomic.Pointer[interruption]
	closed    atomic.Bool

	mu       sync.Mutex // guards book, inflight; held while a record is appended
	book     book
	inflight map[keyID]fingerprint
}

// interruption ends all waits of calls in flight when done.
type interruption struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func newInterruption() *interruption {
	ctx, cancel := context.WithCancel(context.Background())
	return &interruption{ctx, cancel}
}

// Open loads the ledgers from cfg.LedgerPath and returns a simulator that goes
// on where the last one on that file ended.
func Open(cfg Config) (*Sim, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Sim{
		cfg: cfg, logger: cfg.Logger, endpoints: catalog(),
		script: script{now: cfg.Now}, book: newBook(), inflight: map[keyID]fingerprint{},
	}
	settings := DefaultSettings().merged(cfg.Settings)
	s.settings.Store(&settings)
	s.interrupt.Store(newInterruption())
	s.admin = s.adminHandler()
	if _, err := s.script.set(cfg.Faults); err != nil {
		return nil, fmt.Errorf("sim: invalid configuration: %w", err)
	}
	log, err := appendlog.Open(cfg.LedgerPath, !cfg.NoSync, s.book.load)
	if err != nil {
		return nil, fmt.Errorf("sim: open ledger: %w", err)
	}
	s.log = log
	if cut := log.Cut(); cut > 0 {
		s.logger.Warn("sim: cut a torn record that no reply had acknowledged", "path", cfg.LedgerPath, "bytes", cut)
	}
	s.logger.Debug("sim: ledger loaded", "path", cfg.LedgerPath, "calls", len(s.book.calls), "effects", len(s.book.effects))
	return s, nil
}

// Settings returns the behaviour in force.
func (s *Sim) Settings() Settings { return *s.settings.Load() }

// ChangeSettings applies the named parts; see [Settings]. It returns all
// settings as they are then.
func (s *Sim) ChangeSettings(change Settings) (Settings, error) {
	if err := change.validate(); err != nil {
		return Settings{}, fmt.Errorf("sim: %w", err)
	}
	for {
		old := s.settings.Load()
		next := old.merged(change)
		if s.settings.CompareAndSwap(old, &next) {
			return next, nil
		}
	}
}

// Stats are totals since the ledger file began.
type Stats struct {
	Calls    int   `json:"calls"`
	Effects  int   `json:"effects"`
	InFlight int   `json:"inFlight"` // calls under a key that are being processed
	Bytes    int64 `json:"bytes"`    // length of the ledger file
}

// Stats returns the totals.
func (s *Sim) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{len(s.book.calls), len(s.book.effects), len(s.inflight), s.log.Size()}
}

// Err returns why no call can be processed any more, or nil.
func (s *Sim) Err() error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.log.Err()
}

// Effects returns a copy of the effects ledger.
func (s *Sim) Effects() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Effect(nil), s.book.effects...)
}

// Reset empties both ledgers and forgets all keys. Calls that wait are cut
// without an effect. Settings and faults stay.
func (s *Sim) Reset() error {
	next := newInterruption()
	s.interrupt.Swap(next).cancel()
	s.flow.Lock()
	defer s.flow.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.log.Reset(); err != nil {
		return fmt.Errorf("sim: reset: %w", err)
	}
	s.book, s.inflight = newBook(), map[keyID]fingerprint{}
	return nil
}

// Close cuts the calls that wait, lets the others finish and closes the ledger
// file. A second Close does nothing.
func (s *Sim) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.interrupt.Load().cancel()
	s.doors.close()
	s.flow.Lock()
	defer s.flow.Unlock()
	return s.log.Close()
}

// append writes one record under s.mu.
func (s *Sim) append(r record) (appendlog.Span, error) { return s.log.Append(encode(r)) }

// arrive gives the call its place in the calls ledger.
func (s *Sim) arrive(c *Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.arrive(c)
	span, err := s.append(record{Call: c})
	if err != nil {
		return err
	}
	s.book.calls = append(s.book.calls, callRef{call: span})
	return nil
}

// finish records how a call ended that had no effect and whose answer is not kept.
func (s *Sim) finish(c *Call, reply Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	span, err := s.append(record{Done: &done{Call: c.Seq, Reply: reply}})
	if err != nil {
		s.logger.Error("sim: ledger write failed", "error", err)
		return
	}
	s.book.finish(span, c.Seq, nil, nil)
}

// sleep waits for d, or for the client to give up when d is 0. It reports
// false when the simulator interrupts the call.
func (s *Sim) sleep(client context.Context, stop *interruption, d time.Duration) bool {
	var timer <-chan time.Time
	var gone <-chan struct{}
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	} else {
		gone = client.Done()
	}
	select {
	case <-timer:
	case <-gone:
	case <-stop.ctx.Done():
		return false
	}
	return stop.ctx.Err() == nil
}
