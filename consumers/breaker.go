package consumers

import (
	"math"
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

// allow is how many claims the breaker lets be made with so many in flight, and how long to wait if there are none.
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
		return math.MaxInt, b.every
	}
}

// closed tells whether the destination is in order as far as is known.
func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at == BreakerClosed
}

// sign is what the end of an attempt says about its destination.
type sign uint8

// The signs.
const (
	signAnswer  sign = iota // it answered as destinations do, with a yes, a no or a not now
	signFault               // it is at fault, whoever asks
	signSilence             // it gave no answer: a single call may be lost, but it is no sign of life
)

func signOf(e Ended) sign {
	switch {
	case e.Outage:
		return signFault
	case e.Class == saga.ClassUnknown && e.Exchange.Status == 0, e.Class == saga.ClassParked:
		return signSilence
	default:
		return signAnswer
	}
}

// result takes in how an attempt ended, and returns the state before and after it.
func (b *breaker) result(now time.Time, id saga.ID, s sign) (before, after BreakerState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before = b.at
	switch {
	case s == signFault, s == signSilence && b.at != BreakerClosed:
		b.fault(now, id)
	case s == signAnswer:
		b.answer()
	}
	return before, b.at
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

// health tells a step's own faults from those of its destination.
type health struct {
	mu     sync.Mutex
	latest [2]answer // normal answers to two different sagas, the newer first
	faults map[stepID]time.Time
}

type answer struct {
	id saga.ID
	at time.Time
}

type stepID struct {
	saga saga.ID
	dir  saga.Direction
}

// maxFaults bounds the memory of faults. What is forgotten gets another attempt before it counts as the step's own fault.
const maxFaults = 10_000

func newHealth() *health { return &health{faults: map[stepID]time.Time{}} }

func (h *health) answered(id stepID, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.faults, id)
	if h.latest[0].id != id.saga {
		h.latest[1] = h.latest[0]
	}
	h.latest[0] = answer{id.saga, now}
}

// faulted takes in a fault and tells whether it is the step's own: another saga got a normal answer since this step's first fault.
// Answers from before that say nothing: the destination may have failed in between.
func (h *health) faulted(id stepID, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, known := h.faults[id]
	if !known {
		if len(h.faults) >= maxFaults {
			clear(h.faults)
		}
		h.faults[id] = now
		return false
	}
	for _, a := range h.latest {
		if a.id != id.saga && a.at.After(since) {
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
