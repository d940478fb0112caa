package journal

import "sync"

// histories remembers aggregates with a long history, so that their load is chosen at the first look. Forgetting costs a round trip.
type histories struct {
	// whole is the number of sagas up to which an aggregate is loaded whole.
	whole int

	mu   sync.Mutex
	keys map[Key]struct{}
}

const maxHistories = 100_000

func newHistories() *histories { return &histories{whole: longHistory, keys: map[Key]struct{}{}} }

func (h *histories) long(k Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, known := h.keys[k]
	return known
}

func (h *histories) remember(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.keys) >= maxHistories {
		clear(h.keys)
	}
	h.keys[k] = struct{}{}
}
