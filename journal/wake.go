package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ReadyChannel is the NOTIFY channel of `<token> <destination>`: the destination has got something to claim, and the process of the
// token knows already.
const ReadyChannel = "ebb_ready"

// hub wakes those that wait for work: at once in this process, and by NOTIFY in others. A wake-up may be lost; whoever waits also
// looks by himself from time to time.
type hub struct {
	token string

	mu      sync.Mutex
	waiting map[string][]chan struct{}
	dirty   map[string]bool // to be told to other processes
	remote  chan struct{}
}

func newHub() *hub {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return &hub{token: hex.EncodeToString(b[:]), waiting: map[string][]chan struct{}{}, dirty: map[string]bool{}, remote: make(chan struct{}, 1)}
}

// Wakes gives a channel that gets a value whenever the destination may have something to claim, and a function to end that.
func (s *Store) Wakes(destination string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[destination] = append(h.waiting[destination], ch)
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		list := h.waiting[destination]
		for i, c := range list {
			if c == ch {
				h.waiting[destination] = append(list[:i:i], list[i+1:]...)
				return
			}
		}
	}
}

// ready wakes this process and, soon, the others.
func (h *hub) ready(destinations map[string]bool) {
	if len(destinations) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for d := range destinations {
		h.wake(d)
		h.dirty[d] = true
	}
	signal(h.remote)
}

func (h *hub) wake(destination string) {
	for _, ch := range h.waiting[destination] {
		signal(ch)
	}
}

func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for d := range h.waiting {
		h.wake(d)
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Listen passes wake-ups between processes until ctx ends. It reconnects by itself and wakes everybody after that, since what was
// notified meanwhile is lost.
func (s *Store) Listen(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.tell(ctx) })
	for ctx.Err() == nil {
		err := s.listen(ctx)
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "LISTEN was interrupted, connecting again", "error", err)
			pause(ctx, 250*time.Millisecond)
		}
	}
}

func (s *Store) listen(ctx context.Context) error {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	conn := pooled.Hijack()
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+ReadyChannel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.hub.wakeAll()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		token, destination, _ := strings.Cut(n.Payload, " ")
		if token == s.hub.token {
			continue
		}
		s.hub.mu.Lock()
		s.hub.wake(destination)
		s.hub.mu.Unlock()
	}
}

// tell notifies other processes, outside the transactions that made the work: a NOTIFY inside them would make all commits of the
// database wait for each other.
func (s *Store) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hub.remote:
		}
		if err := s.hub.notify(ctx, s.pool); err != nil && ctx.Err() == nil {
			s.log.DebugContext(ctx, "NOTIFY failed; others will look by themselves", "error", err)
		}
		pause(ctx, 2*time.Millisecond) // what becomes ready meanwhile is told at once
	}
}

func (h *hub) notify(ctx context.Context, pool *pgxpool.Pool) error {
	h.mu.Lock()
	payloads := make([]string, 0, len(h.dirty))
	for d := range h.dirty {
		payloads = append(payloads, h.token+" "+d)
	}
	clear(h.dirty)
	h.mu.Unlock()
	_, err := pool.Exec(ctx, "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p", ReadyChannel, payloads)
	return err
}
