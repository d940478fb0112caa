package consumers

import (
	"sync"
	"time"

	"github.com/ebbline/ebb/journal"
)

// roster has the consumers of a process that claim what the results of others let go on, by destination.
type roster struct {
	mu      sync.Mutex
	running map[string]*Consumer
}

// join lets the consumer claim in the transactions of others.
func (r *roster) join(c *Consumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[string]*Consumer{}
	}
	r.running[c.cfg.Destination] = c
}

// leave ends that; what the consumer has offered by then is still started.
func (r *roster) leave(c *Consumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[c.cfg.Destination] == c {
		delete(r.running, c.cfg.Destination)
	}
}

// reserve takes up to n places of the destination's consumer, nil if it is not there.
func (r *roster) reserve(destination string, n int) (*Consumer, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.running[destination]
	if c == nil {
		return nil, 0
	}
	got, _ := c.reserve(fromResult, n)
	if got < n {
		c.flights.want(time.Now(), fromResult)
	}
	return c, got
}

// offering are the places that one transaction was offered.
type offering struct {
	roster  *roster
	started time.Time
	given   map[string]*offered
}

type offered struct {
	to     *Consumer
	places int
}

func (r *roster) offering() *offering {
	return &offering{roster: r, started: time.Now(), given: map[string]*offered{}}
}

// offer is the journal's Offer.
func (o *offering) offer(destination string, n int) journal.ClaimRequest {
	c, places := o.roster.reserve(destination, n)
	if c == nil {
		return journal.ClaimRequest{}
	}
	o.given[destination] = &offered{c, places}
	return c.claimRequest(places)
}

// start begins what was claimed and gives the other places back.
func (o *offering) start(claimed []journal.Claimed) {
	byDest := map[string][]journal.Claimed{}
	for _, m := range claimed {
		byDest[m.Dest] = append(byDest[m.Dest], m)
	}
	for dest, g := range o.given {
		mine := byDest[dest]
		g.to.start(fromResult, mine, o.started)
		if unused := g.places - len(mine); unused > 0 {
			g.to.flights.add(fromResult, -unused)
		}
	}
}
