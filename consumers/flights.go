package consumers

import (
	"sync"
	"time"
)

// cause is why a step is claimed.
type cause uint8

// The causes.
const (
	fromQueue  cause = iota // it was due
	fromResult              // a result has let it go on
	causes
)

// hungry is how long a want of places is remembered.
const hungry = 100 * time.Millisecond

// flights counts attempts from their claim until their end is stored, and shares the places between the causes: as long as both want
// more than they get, each has half of them. A claim that goes with a result costs much less than one from the queue; without a share
// of their own, a queue that has formed once would take all places for ever.
type flights struct {
	capacity int

	mu     sync.Mutex
	n      [causes]int
	wanted [causes]time.Time
	freed  chan struct{} // has a value after a place became free
	idle   chan struct{} // closed while nothing flies
}

func newFlights(capacity int) *flights {
	f := &flights{capacity: capacity, freed: make(chan struct{}, 1), idle: make(chan struct{})}
	close(f.idle)
	return f
}

// free is how many of the wanted places there are for the cause now.
func (f *flights) free(now time.Time, by cause, wanted int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.capacity - f.total()
	if now.Sub(f.wanted[fromResult-by]) < hungry {
		n = min(n, f.share(by)-f.n[by])
	}
	return max(min(n, wanted), 0)
}

// want notes that the cause would have taken more places than it got.
func (f *flights) want(now time.Time, by cause) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted[by] = now
}

// share is what the cause has while the other one wants more: the queue gets the odd place, and the only one.
func (f *flights) share(of cause) int {
	if of == fromResult {
		return f.capacity / 2
	}
	return f.capacity - f.capacity/2
}

func (f *flights) total() int { return f.n[fromQueue] + f.n[fromResult] }

// add counts n more in flight, or fewer.
func (f *flights) add(from cause, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.total()
	f.n[from] += n
	switch is := f.total(); {
	case was == 0 && is > 0:
		f.idle = make(chan struct{})
	case was > 0 && is == 0:
		close(f.idle)
	}
	if n < 0 {
		select {
		case f.freed <- struct{}{}:
		default:
		}
	}
}

func (f *flights) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total()
}

// wait waits until nothing is in flight, at most for d; negative means for ever.
func (f *flights) wait(d time.Duration) {
	f.mu.Lock()
	idle := f.idle
	f.mu.Unlock()
	if d < 0 {
		<-idle
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}
