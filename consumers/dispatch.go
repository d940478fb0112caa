package consumers

import (
	"context"
	"time"

	"github.com/ebbline/ebb/internal/failpoint"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// dispatch claims what is due and starts its attempts until ctx ends.
func (c *Consumer) dispatch(ctx context.Context) {
	wakes, unsubscribe := c.cfg.Store.Wakes(c.cfg.Destination)
	defer unsubscribe()
	for ctx.Err() == nil {
		places, wait := c.reserve(fromQueue, c.cfg.Batch)
		if places == 0 {
			c.sleep(ctx, nil, wait)
			continue
		}
		started := time.Now()
		batch, err := c.claim(ctx, places)
		c.flights.add(fromQueue, len(batch.Claimed)-places)
		if err != nil {
			if ctx.Err() == nil {
				c.log.WarnContext(ctx, "claim failed, trying again", "error", err)
			}
			c.sleep(ctx, nil, 200*time.Millisecond)
			continue
		}
		c.start(fromQueue, batch.Claimed, started)
		if batch.More {
			c.flights.want(time.Now(), fromQueue)
		}
		if !batch.More || len(batch.Claimed)+batch.Settled == 0 {
			c.sleep(ctx, wakes, c.untilDue(batch))
		}
	}
}

// claim is not cut off by the stop: a claim that was committed without our knowing would wait for its lease to run out.
func (c *Consumer) claim(ctx context.Context, places int) (journal.ClaimBatch, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.lease())
	defer cancel()
	return watched(c.link, c.cfg.Store.Claim)(ctx, c.claimRequest(places))
}

func (c *Consumer) claimRequest(places int) journal.ClaimRequest {
	return journal.ClaimRequest{
		Destination: c.cfg.Destination, Worker: c.cfg.Worker, Limit: places, Lease: c.cfg.lease(), Prepare: c.cfg.Endpoint.Prepare,
	}
}

// reserve takes the places of at most so many attempts that may be claimed now; what is not used is to be given back.
func (c *Consumer) reserve(by cause, most int) (int, time.Duration) {
	c.claiming.Lock()
	defer c.claiming.Unlock()
	n, wait := c.vacancies(by, most)
	c.flights.add(by, n)
	return n, wait
}

// untilDue is how long there is nothing to claim as far as the batch tells.
func (c *Consumer) untilDue(b journal.ClaimBatch) time.Duration {
	switch {
	case b.Busy > 0:
		return 2 * time.Millisecond
	case b.Next >= 0:
		return min(b.Next+time.Millisecond, c.cfg.Scan)
	default:
		return c.cfg.Scan
	}
}

// vacancies is how many claims may be made now, and how long to wait if there are none.
func (c *Consumer) vacancies(by cause, most int) (int, time.Duration) {
	now := time.Now()
	n := c.flights.free(now, by, min(most, c.cfg.Batch), c.pace.within(c.cfg.Ahead, c.flights.places(), c.cfg.Batch))
	allowed, wait := c.breaker.allow(now, c.flights.count())
	n = min(n, allowed)
	if n <= 0 {
		return 0, wait
	}
	if c.limiter == nil {
		return n, 0
	}
	if n = min(n, int(c.limiter.Tokens())); n <= 0 {
		return 0, c.cfg.RateEvery
	}
	return n, 0
}

// sleep waits for a wake-up, a free place or the time to pass.
func (c *Consumer) sleep(ctx context.Context, wakes <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	freed := c.flights.freed
	if wakes != nil {
		freed = nil // there are places; what lacks is work
	}
	select {
	case <-ctx.Done():
	case <-wakes:
	case <-freed:
	case <-t.C:
	}
}

// start begins the attempts of the claims, whose places are reserved.
func (c *Consumer) start(from cause, claimed []journal.Claimed, started time.Time) {
	if c.limiter != nil {
		// Both loops may have seen the same tokens: what was taken beyond them is a debt.
		c.limiter.ReserveN(time.Now(), len(claimed))
	}
	deadline := started.Add(c.cfg.LeaseMargin)
	for _, m := range claimed {
		go c.attempt(c.calls, flight{m, from}, deadline)
	}
}

// flight is an attempt under way.
type flight struct {
	journal.Claimed
	from cause
}

// attempt makes one call and hands over how it ended.
func (c *Consumer) attempt(ctx context.Context, m flight, deadline time.Time) {
	if !c.enter(deadline) {
		c.giveBack(ctx, m, false)
		return
	}
	end, err := c.call(ctx, m.Claimed, deadline)
	c.places.leave()
	if err != nil {
		c.giveBack(ctx, m, end.Exchange.Sent)
		return
	}
	interrupted := ctx.Err() != nil && !answered(end.Class)
	if interrupted || end.HeldBack {
		c.giveBack(ctx, m, end.Exchange.Sent)
		return
	}
	result := saga.Result{Class: end.Class, Reason: end.Reason, RetryAfter: end.RetryAfter, Revert: end.Revert}
	result.Healthy, result.Outage = c.judge(ctx, m.Claimed, end)
	if m.Dir == saga.Do && c.trial.result(m.SpecVersion, end.Class) {
		c.suspect(ctx, m.SpecVersion)
	}
	c.keep(ctx, m, journal.Recording{
		Claimed: m.Claimed, Worker: c.cfg.Worker, SpecHash: end.SpecHash, Result: result, Exchange: end.Exchange, Undo: end.Undo,
	})
}

// enter waits for one of the destination's places. What was claimed ahead of them is given back at the stop, if the destination fails
// meanwhile, or if no place comes free while there is time for the call.
func (c *Consumer) enter(deadline time.Time) bool {
	in := c.places.enter()
	select {
	case <-in:
		return true
	default:
	}
	patience := time.Until(deadline) / 2
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-in:
	case <-c.stopping:
		return c.missed(in)
	case <-t.C:
		c.pace.took(patience) // which is longer than was foreseen
		return c.missed(in)
	}
	if !c.breaker.closed() {
		c.places.leave()
		return false
	}
	return true
}

// missed gives up a place, also one that has just come free.
func (c *Consumer) missed(in chan struct{}) bool {
	if !c.places.giveUp(in) {
		c.places.leave()
	}
	return false
}

// call makes the call between the places where a test may strike.
func (c *Consumer) call(ctx context.Context, m journal.Claimed, deadline time.Time) (Ended, error) {
	if err := failpoint.HitIn("consumers.before-send", m.Dest); err != nil {
		return Ended{}, err
	}
	started := time.Now()
	end := c.cfg.Endpoint.Attempt(ctx, Call{Claimed: m, Key: Key(m), Deadline: deadline})
	c.pace.took(time.Since(started))
	return end, failpoint.HitIn("consumers.after-reply", m.Dest)
}

// Key is the Idempotency-Key of every attempt of a step (G4).
func Key(m journal.Claimed) string { return saga.Key(m.Saga, m.Dest, m.Dir) }

// answered tells whether the destination has dealt with the call, or with the question.
func answered(c saga.Class) bool {
	return c == saga.ClassSucceeded || c == saga.ClassRefused || c == saga.ClassPending || c == saga.ClassNotFound
}

// judge lets breaker and health know about the end, and tells whether a fault is the step's own, or falls to an outage.
func (c *Consumer) judge(ctx context.Context, m journal.Claimed, end Ended) (healthy, outage bool) {
	now, id := time.Now(), stepID{m.Saga, m.Dir}
	if answered(end.Class) {
		c.health.answered(id, now)
	} else {
		healthy = c.health.faulted(id, now)
	}
	said := signOf(end)
	before, after := c.breaker.result(now, m.Saga, said)
	if before != after {
		c.log.WarnContext(ctx, "breaker", "from", before.String(), "to", after.String(), "reason", end.Reason)
	}
	c.cfg.Metrics.attempt(c.cfg.Destination, m.Dir, end.Class, m.Attempt, end.Exchange.Duration)
	c.cfg.Metrics.breaker(c.cfg.Destination, after)
	outage = said != signAnswer && after == BreakerOpen
	return healthy && !outage, outage
}

// keep stores a result; the attempt is in flight until then, so that its lease protects it, but its place is free.
func (c *Consumer) keep(ctx context.Context, m flight, r journal.Recording) {
	c.flights.end(m.from)
	landed := c.landed(ctx, m.Claimed)
	if err := c.record.ends.Submit(context.WithoutCancel(ctx), r, landed); err != nil {
		landed(err)
	}
}

func (c *Consumer) giveBack(ctx context.Context, m flight, sent bool) {
	c.flights.end(m.from)
	landed := c.landed(ctx, m.Claimed)
	if err := c.release.Submit(context.WithoutCancel(ctx), journal.Return{Claimed: m.Claimed, Worker: c.cfg.Worker, Sent: sent}, landed); err != nil {
		landed(err)
	}
}

// landed ends an attempt's flight once its end is stored, or cannot be: then its lease will run out, and the step goes on from there.
func (c *Consumer) landed(ctx context.Context, m journal.Claimed) func(error) {
	return func(err error) {
		c.flights.stored()
		if err != nil {
			c.log.WarnContext(ctx, "result was not stored", "saga", m.Saga.String(), "direction", m.Dir.String(), "epoch", m.Epoch, "error", err)
		}
	}
}

// expire takes claims from workers whose leases have run out, as long as this process could have kept its own.
func (c *Consumer) expire(ctx context.Context) {
	every := max(c.cfg.lease()/8, 50*time.Millisecond)
	for ctx.Err() == nil {
		t := time.NewTimer(min(every, time.Second))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		if c.link.connectedFor(time.Now()) < c.cfg.lease() {
			// Only a look that succeeds keeps the connection known while nothing else goes on.
			c.link.saw(c.cfg.Store.Ping(ctx))
			continue
		}
		n, err := c.cfg.Store.Expire(ctx, c.cfg.Destination, c.cfg.Batch)
		c.link.saw(err)
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "leases could not be looked at", "error", err)
		}
		if n > 0 {
			c.log.InfoContext(ctx, "leases ran out", "steps", n)
		}
	}
}
