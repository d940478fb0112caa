package handler

import (
	"context"
	"sync"
	"time"
)

// watch knows the handlers that hang.
type watch struct {
	destination string
	// places is how many calls this process may make at a time; it changes as replicas come and go.
	places func() int

	mu    sync.Mutex
	last  int
	since map[int]time.Time
	// more has a value after another one hangs.
	more chan struct{}
}

func newWatch(destination string) *watch {
	return &watch{destination: destination, since: map[int]time.Time{}, more: make(chan struct{}, 1)}
}

// hangs counts a handler that does not return; the number is for returned.
func (w *watch) hangs(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	w.since[w.last] = now
	select {
	case w.more <- struct{}{}:
	default:
	}
	return w.last
}

func (w *watch) returned(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, n)
}

// now is nil while none hangs.
func (w *watch) now() *HungError {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.since) == 0 {
		return nil
	}
	now := time.Now()
	e := &HungError{Destination: w.destination, Count: len(w.since), Places: w.places()}
	for _, at := range w.since {
		e.Longest = max(e.Longest, now.Sub(at))
	}
	return e
}

// check is the readiness.
func (w *watch) check(context.Context) error {
	if e := w.now(); e != nil {
		return e
	}
	return nil
}

// run ends with a *HungError when every place is taken by a handler that hangs: nothing would ever move here again.
func (w *watch) run(ctx context.Context) error {
	tick := time.NewTicker(time.Second) // replicas come, and places go
	defer tick.Stop()
	for {
		if e := w.now(); e != nil && e.Count >= e.Places {
			return e
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.more:
		case <-tick.C:
		}
	}
}
