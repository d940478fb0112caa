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

// flights counts attempts from their claim until their end is stored. An attempt has one of the destination's places until its call
// has ended; so many ends may wait to be stored before no more calls begin.
//
// The places are shared between the causes: as long as both want more than they get, each has half of them. A claim that goes with a
// result costs much less than one from the queue; without a share of their own, a queue that has formed once would take all places for
// ever.
type flights struct {
	unstored int

	mu       sync.Mutex
	capacity int
	n        [causes]int // claimed, and the call has not ended
	ended    int         // the call has ended, which is not stored
	wanted   [causes]time.Time
	freed    chan struct{} // has a value after a place became free
	idle     chan struct{} // closed while nothing flies
}

func newFlights(capacity, unstored int) *flights {
	f := &flights{capacity: capacity, unstored: unstored, freed: make(chan struct{}, 1), idle: make(chan struct{})}
	close(f.idle)
	return f
}

// free is how many of the wanted claims may be made for the cause now, if so many may be made ahead of their places.
func (f *flights) free(now time.Time, by cause, wanted, ahead int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	capacity := f.capacity + ahead
	n := min(capacity-f.calling(), capacity+f.unstored-f.total())
	if now.Sub(f.wanted[fromResult-by]) < hungry {
		n = min(n, share(capacity, by)-f.n[by])
	}
	return max(min(n, wanted), 0)
}

// resize sets the number of places, and reports whether that changes it.
func (f *flights) resize(capacity int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if capacity == f.capacity {
		return false
	}
	f.capacity = capacity
	select {
	case f.freed <- struct{}{}:
	default:
	}
	return true
}

// places is the number of places.
func (f *flights) places() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.capacity
}

// want notes that the cause would have taken more places than it got.
func (f *flights) want(now time.Time, by cause) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted[by] = now
}

// share is what the cause has while the other one wants more: the queue gets the odd place, and the only one.
func share(capacity int, of cause) int {
	if of == fromResult {
		return capacity / 2
	}
	return capacity - capacity/2
}

func (f *flights) calling() int { return f.n[fromQueue] + f.n[fromResult] }

func (f *flights) total() int { return f.calling() + f.ended }

// add counts n more claims, or fewer.
func (f *flights) add(from cause, n int) {
	f.change(func() { f.n[from] += n })
}

// end takes the place from an attempt whose call has ended; it flies on until that is stored.
func (f *flights) end(from cause) {
	f.change(func() {
		f.n[from]--
		f.ended++
	})
}

// stored counts the end of a flight.
func (f *flights) stored() {
	f.change(func() { f.ended-- })
}

func (f *flights) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	calling, was := f.calling(), f.total()
	do()
	switch is := f.total(); {
	case was == 0 && is > 0:
		f.idle = make(chan struct{})
	case was > 0 && is == 0:
		close(f.idle)
	}
	if f.calling() < calling || f.total() < was {
		select {
		case f.freed <- struct{}{}:
		default:
		}
	}
}

// count is the number of calls under way, or about to begin.
func (f *flights) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calling()
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

// pace knows how long calls take lately.
type pace struct {
	mu   sync.Mutex
	mean time.Duration
}

// took takes in how long a call took.
func (p *pace) took(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		p.mean = d
		return
	}
	p.mean += (d - p.mean) / 8
}

// within is how many calls end within d if so many are made at a time, at most so many.
func (p *pace) within(d time.Duration, atATime, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean <= 0 {
		return 0
	}
	return int(min(int64(atATime)*int64(d)/int64(p.mean), int64(most)))
}
