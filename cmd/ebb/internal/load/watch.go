package load

import (
	"context"
	"sync"
	"time"

	"github.com/ebbline/ebb/cmd/ebb/internal/orderapi"
)

// pageSize is how many orders the API gives at once.
const pageSize = 500

// watcher looks for the ends of accepted orders.
type watcher struct {
	orders Orders

	mu    sync.Mutex
	open  map[int64]bool // whether how long the order took is of interest
	ends  map[string]int // by status
	took  []time.Duration
	empty chan struct{} // closed when nothing is open; replaced when something is
}

func newWatcher(orders Orders) *watcher {
	w := &watcher{orders: orders, open: map[int64]bool{}, ends: map[string]int{}, empty: make(chan struct{})}
	close(w.empty)
	return w
}

func (w *watcher) add(id int64, timed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.open) == 0 {
		w.empty = make(chan struct{})
	}
	w.open[id] = timed
}

func (w *watcher) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.look(ctx)
	}
}

// look reads the list from the newest open order down to the oldest. What cannot be read now is looked at again.
func (w *watcher) look(ctx context.Context) {
	low, high := w.span()
	for before := high + 1; before > low && high > 0; {
		page, err := w.orders.List(ctx, orderapi.Filter{Before: before, Limit: pageSize})
		if err != nil || len(page.Orders) == 0 {
			return
		}
		w.note(page.Orders)
		before = page.Orders[len(page.Orders)-1].ID
	}
}

// span gives the lowest and the highest open order, 0 and 0 for none.
func (w *watcher) span() (low, high int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.open {
		if low == 0 || id < low {
			low = id
		}
		high = max(high, id)
	}
	return low, high
}

func (w *watcher) note(orders []orderapi.Order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range orders {
		timed, ours := w.open[o.ID]
		// An order that is to be cancelled is not at its end before that has been tried.
		if !ours || !o.Settled() || !timed && o.Status == "CONFIRMED" && o.Attention == nil {
			continue
		}
		delete(w.open, o.ID)
		end := o.Status
		if o.Attention != nil {
			end = Attention
		}
		w.ends[end]++
		if timed {
			w.took = append(w.took, o.UpdatedAt.Sub(o.CreatedAt))
		}
	}
	if len(w.open) == 0 {
		select {
		case <-w.empty:
		default:
			close(w.empty)
		}
	}
}

// await waits until every accepted order has ended, at most so long.
func (w *watcher) await(ctx context.Context, most time.Duration) {
	w.mu.Lock()
	empty := w.empty
	w.mu.Unlock()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	select {
	case <-empty:
	case <-ctx.Done():
	case <-deadline.C:
	}
}
