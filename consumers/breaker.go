package consumers

import (
	"sync"
	"time"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// BreakerState is the state of a destination's breaker.
type BreakerState uint8

// The states.
const (
	BreakerClosed BreakerState = iota
	BreakerRamping
	BreakerOpen
)

func (s BreakerState) String() string { return [...]string{"closed", "ramping", "open"}[s] }

// breaker holds claims back while a destination is down (G10).
type breaker struct {
	after    int
	every    time.Duration
	most     time.Duration
	capacity int

	mu     sync.Mutex
	at     BreakerState
	row    []saga.ID // different sagas of the faults in a row
	places int       // while ramping
	wait   time.Duration
	next   time.Time // of the next probe
}

func newBreaker(after int, every, most time.Duration, capacity int) *breaker {
	return &breaker{after: after, every: every, most: most, capacity: capacity}
}

// allow is how many claims may be made with so many in flight, and how long to wait if there are none.
func (b *breaker) allow(now time.Time, flying int) (int, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.at {
	case BreakerOpen:
		if flying > 0 {
			return 0, b.every
		}
		if wait := b.next.Sub(now); wait > 0 {
			return 0, wait
		}
		return 1, 0
	case BreakerRamping:
		return max(b.places-flying, 0), b.every
	default:
		return b.capacity, b.every
	}
}

func (b *breaker) state() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

// result takes in how an attempt ended and returns the state after it.
func (b *breaker) result(now time.Time, id saga.ID, outage bool) BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	if outage {
		b.fault(now, id)
	} else {
		b.answer()
	}
	return b.at
}

func (b *breaker) fault(now time.Time, id saga.ID) {
	switch b.at {
	case BreakerClosed:
		for _, seen := range b.row {
			if seen == id {
				return
			}
		}
		b.row = append(b.row, id)
		if len(b.row) < b.after {
			return
		}
		b.wait = b.every
	case BreakerRamping:
		b.wait = b.every
	case BreakerOpen:
		b.wait = min(2*b.wait, b.most)
	}
	b.at, b.row = BreakerOpen, nil
	b.next = now.Add(b.wait)
}

func (b *breaker) answer() {
	b.row = nil
	switch b.at {
	case BreakerClosed:
	case BreakerOpen:
		b.at, b.places = BreakerRamping, 1
	case BreakerRamping:
		if b.places++; b.places >= b.capacity {
			b.at = BreakerClosed
		}
	}
}

// health remembers when the destination last answered normally, and for whom.
type health struct {
	mu     sync.Mutex
	latest [2]answer // of two different sagas, the newer first
}

type answer struct {
	id saga.ID
	at time.Time
}

func (h *health) answered(id saga.ID, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latest[0].id != id {
		h.latest[1] = h.latest[0]
	}
	h.latest[0] = answer{id, now}
}

// answeredOther tells whether another saga got a normal answer since the time: then a fault is the step's own.
func (h *health) answeredOther(id saga.ID, since time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.latest {
		if a.id != id && a.at.After(since) {
			return true
		}
	}
	return false
}

// link knows since when the database has been there for this process without a gap.
type link struct {
	mu    sync.Mutex
	since time.Time
}

func newLink() *link { return &link{since: time.Now()} }

// saw takes in how a call of the store went.
func (l *link) saw(err error) {
	if !journal.Retryable(err) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Now()
}

func (l *link) connectedFor(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.since)
}
