package consumers

import "sync"

// gate lets at most so many in at a time, in the order of their coming. The limit may change while they wait.
type gate struct {
	mu      sync.Mutex
	limit   int
	inside  int
	waiting []chan struct{}
}

func newGate(limit int) *gate { return &gate{limit: limit} }

// enter gives a channel that is closed once the caller is in; it has to leave then. Who does not wait for that has to call give up.
func (g *gate) enter() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := make(chan struct{})
	g.waiting = append(g.waiting, in)
	g.admit()
	return in
}

// giveUp ends the waiting. It reports false if the caller is in already.
func (g *gate) giveUp(in chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == in {
			g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.admit()
}

// resize sets the limit; who is in stays in.
func (g *gate) resize(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = limit
	g.admit()
}

func (g *gate) admit() {
	for g.inside < g.limit && len(g.waiting) > 0 {
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
		g.inside++
	}
}
