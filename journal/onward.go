package journal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ebbline/ebb/journal/saga"
)

// Offer gives places for up to n steps of a destination that could be sent at once: the request's Limit is how many may be claimed,
// zero for none. It is called while aggregates are locked, so it must be quick and ask nobody.
type Offer func(destination string, n int) ClaimRequest

// Recorded is what a RecordOnward brought.
type Recorded struct {
	// Errs has an error per member, see Record.
	Errs []error
	// Claimed are steps that had waited for these results, claimed in the same transaction.
	Claimed []Claimed
}

// RecordOnward is Record, and claims in the same transaction what the results let go on, as far as places are offered: the claim of
// a step that waited for another costs no transaction of its own. It claims only what it can render without asking the database
// again; the rest is left to Claim.
func (s *Store) RecordOnward(ctx context.Context, members []Recording, offer Offer) (Recorded, error) {
	var out Recorded
	var u *unit
	errs, err := each(ctx, s, "record", members, recordedClaim, (*unit).record, func(of *unit) {
		u = of
		out.Claimed = u.claimOnward(ctx, u.onward(members), offer)
	})
	if err != nil {
		return Recorded{}, err
	}
	s.replies.keep(u.settled)
	out.Errs = errs
	return out, nil
}

// next is a step that became READY, with what its request is made of.
type next struct {
	candidate
	dest     string
	material *material
}

// onward finds the do steps that this transaction made READY and whose requests can be rendered from what is at hand: those that come
// after a step that has ended, and those of the next events of the aggregates.
func (u *unit) onward(members []Recording) []next {
	events := make(map[saga.ID]eventText, len(members))
	for i := range members {
		m := &members[i]
		events[m.Saga] = eventText{m.EventBody, m.EventTime, m.TraceParent}
	}
	var out []next
	for _, k := range u.keys {
		l := u.aggs[k]
		for _, s := range l.agg.Sagas {
			was := l.sagas[s.ID].steps
			for i, t := range s.Steps {
				if i >= len(was) || was[i].State != saga.Waiting || !u.fresh(t) {
					continue
				}
				if m, ok := u.materialOf(events, s, t); ok {
					out = append(out, next{candidate{s.ID, saga.Do, k}, t.Dest, m})
				}
			}
		}
	}
	return out
}

// fresh tells whether a do step may be sent now for the first time.
func (u *unit) fresh(t *saga.Step) bool {
	return t.Dir == saga.Do && t.State == saga.Ready && t.Epoch == 0 && t.Due <= u.env.Now
}

// materialOf gives what the request of a step is made of, if all of it is at hand.
func (u *unit) materialOf(events map[saga.ID]eventText, s *saga.Saga, t *saga.Step) (*material, bool) {
	e, ok := events[s.ID]
	if !ok {
		e, ok = u.store.texts.find(s.ID)
	}
	if !ok {
		return nil, false
	}
	out := &material{body: e.body, at: e.at, traceparent: e.traceparent, responses: make(map[string]Response, len(t.Rules.After))}
	for _, dest := range t.Rules.After {
		if d := s.Step(dest, saga.Do); d == nil || d.State != saga.Succeeded {
			continue // there is none
		}
		k := replyKey{s.ID, dest}
		r, ok := u.settled[k]
		if !ok {
			r, ok = u.store.replies.find(k)
		}
		if !ok {
			return nil, false
		}
		out.responses[dest] = r
	}
	return out, true
}

// claimOnward claims what there are places for.
func (u *unit) claimOnward(ctx context.Context, ready []next, offer Offer) []Claimed {
	wanted := map[string]int{}
	for _, n := range ready {
		wanted[n.dest]++
	}
	requests := map[string]ClaimRequest{}
	var out ClaimBatch
	for _, n := range ready {
		req, asked := requests[n.dest]
		if !asked {
			req = offer(n.dest, wanted[n.dest])
		}
		if req.Limit > 0 {
			before := len(out.Claimed)
			u.claimedFor(n.dest)
			u.claim(ctx, req, n.candidate, n.material, &out)
			req.Limit -= len(out.Claimed) - before
		}
		requests[n.dest] = req
	}
	return out.Claimed
}

// eventText is what requests need of an event.
type eventText struct {
	body        []byte
	at          time.Time
	traceparent string
}

func (e eventText) size() int { return len(e.body) + len(e.traceparent) }

// replyKey names a settled reply.
type replyKey struct {
	saga saga.ID
	dest string
}

func (r Response) size() int { return len(r.Body) }

// recent remembers what this process has stored, for the requests that are made of it. What is remembered never changes; what is
// forgotten is read from the database.
type recent[K comparable, V interface{ size() int }] struct {
	mu    sync.Mutex
	known map[K]V
	order []K
	bytes int
}

// Bounds of what is remembered: what is of a common size is needed again within a second.
const (
	maxRecent       = 8192
	maxRecentBytes  = 16 << 20
	maxRecentLength = 64 << 10
)

func newRecent[K comparable, V interface{ size() int }]() *recent[K, V] {
	return &recent[K, V]{known: map[K]V{}}
}

func (r *recent[K, V]) find(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, ok := r.known[k]
	return out, ok
}

// keep remembers what is durable now, and forgets the oldest.
func (r *recent[K, V]) keep(durable map[K]V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, v := range durable {
		if _, ok := r.known[k]; ok || v.size() > maxRecentLength {
			continue
		}
		r.known[k] = v
		r.order = append(r.order, k)
		r.bytes += v.size()
	}
	gone := 0
	for len(r.order)-gone > maxRecent || r.bytes > maxRecentBytes {
		k := r.order[gone]
		r.bytes -= r.known[k].size()
		delete(r.known, k)
		gone++
	}
	r.order = slices.Delete(r.order, 0, gone)
}
