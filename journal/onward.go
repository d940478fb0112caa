package journal

import (
	"context"
	"slices"
	"sync"

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
	errs, err := each(ctx, s, "record", members, recordedClaim, (*unit).record, func(of *unit, errs []error) {
		u = of
		out.Claimed = u.claimOnward(ctx, u.onward(members, errs), offer)
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

// onward finds the do steps that the members' results made READY and whose requests can be rendered from what is at hand.
func (u *unit) onward(members []Recording, errs []error) []next {
	var out []next
	for i := range members {
		m := &members[i]
		if errs[i] != nil || m.Dir != saga.Do {
			continue
		}
		s := u.aggs[m.Aggregate].agg.Find(m.Saga)
		for _, t := range s.Steps {
			if !u.released(t, m.Dest) || slices.ContainsFunc(out, func(n next) bool { return n.saga == s.ID && n.dest == t.Dest }) {
				continue
			}
			if responses, ok := u.repliesBefore(s, t); ok {
				at := &material{body: m.EventBody, at: m.EventTime, traceparent: m.TraceParent, responses: responses}
				out = append(out, next{candidate{s.ID, saga.Do, m.Aggregate}, t.Dest, at})
			}
		}
	}
	return out
}

// released tells whether the step waited for the destination and may now be sent for the first time.
func (u *unit) released(t *saga.Step, by string) bool {
	return t.Dir == saga.Do && t.State == saga.Ready && t.Epoch == 0 && t.Due <= u.env.Now && slices.Contains(t.Rules.After, by)
}

// repliesBefore gives the responses of the destinations that the step comes after, if all of them are at hand.
func (u *unit) repliesBefore(s *saga.Saga, t *saga.Step) (map[string]Response, bool) {
	out := make(map[string]Response, len(t.Rules.After))
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
		out[dest] = r
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

// replyKey names a settled reply.
type replyKey struct {
	saga saga.ID
	dest string
}

// replies remembers replies that this process has recorded, for the requests that are made of them. A settled reply never changes;
// one that is forgotten is read from ebb.calls.
type replies struct {
	mu    sync.Mutex
	known map[replyKey]Response
	order []replyKey
	bytes int
}

// Bounds of what is remembered: a reply of a common size is needed again within a second.
const (
	maxReplies     = 8192
	maxReplyBytes  = 16 << 20
	maxReplyLength = 64 << 10
)

func newReplies() *replies { return &replies{known: map[replyKey]Response{}} }

func (r *replies) find(k replyKey) (Response, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, ok := r.known[k]
	return out, ok
}

// keep remembers replies that are durable now, and forgets the oldest ones.
func (r *replies) keep(settled map[replyKey]Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, v := range settled {
		if _, ok := r.known[k]; ok || len(v.Body) > maxReplyLength {
			continue
		}
		r.known[k] = v
		r.order = append(r.order, k)
		r.bytes += len(v.Body)
	}
	gone := 0
	for len(r.order)-gone > maxReplies || r.bytes > maxReplyBytes {
		k := r.order[gone]
		r.bytes -= len(r.known[k].Body)
		delete(r.known, k)
		gone++
	}
	r.order = slices.Delete(r.order, 0, gone)
}
