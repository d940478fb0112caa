package handler

import (
	"sync"
	"time"
)

// watch knows the handlers that hang.
type watch struct {
	destination string
	places      int

	mu    sync.Mutex
	last  int
	since map[int]time.Time
	// stuck is closed when every place is taken by one that hangs: nothing would ever move here again.
	stuck chan struct{}
}

func newWatch(destination string, places int) *watch {
	return &watch{destination: destination, places: places, since: map[int]time.Time{}, stuck: make(chan struct{})}
}

// hangs counts a handler that does not return; the number is for returned.
func (w *watch) hangs(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	w.since[w.last] = now
	if len(w.since) == w.places {
		select {
		case <-w.stuck:
		default:
			close(w.stuck)
		}
	}
	return w.last
}

func (w *watch) returned(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, n)
}

// err is nil while none hangs, else a *HungError.
func (w *watch) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.since) == 0 {
		return nil
	}
	now := time.Now()
	e := &HungError{Destination: w.destination, Count: len(w.since), Places: w.places}
	for _, at := range w.since {
		e.Longest = max(e.Longest, now.Sub(at))
	}
	return e
}
