package consumers

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// Replicas of a consumer count themselves this often, and one that has not been seen for so long is none.
const (
	musterEvery = 3 * time.Second
	musterSeen  = 10 * time.Second
)

// muster counts the replicas and takes this one's part of the destination's limits. While the database is away the part stays as it was.
func (c *Consumer) muster(ctx context.Context) {
	place, of, err := c.cfg.Store.Muster(ctx, c.self(), "consumer "+c.cfg.Destination, musterSeen)
	if err != nil {
		if ctx.Err() == nil {
			c.log.WarnContext(ctx, "replicas could not be counted", "error", err)
		}
		return
	}
	places := partOf(c.cfg.Concurrency, place, of)
	if c.flights.resize(places) {
		c.log.InfoContext(ctx, "part of the destination's limits", "replicas", of, "places", places)
	}
	c.places.resize(places)
	if c.limiter != nil {
		c.limiter.SetLimit(rate.Every(c.cfg.RateEvery * time.Duration(of)))
		c.limiter.SetBurst(max(c.cfg.RateBurst/of, 1))
	}
}

// Places is how many calls this replica may make at a time now.
func (c *Consumer) Places() int { return c.flights.places() }

// partOf shares n among so many: the first ones get what is left over. Some get nothing where there are more than there is to share.
func partOf(n, place, of int) int {
	part := n / of
	if place < n%of {
		part++
	}
	return part
}

// self names this replica.
func (c *Consumer) self() string { return c.cfg.Worker + " " + c.cfg.Destination }

// musterLoop counts until ctx ends, and then says goodbye, so that the others need not wait.
func (c *Consumer) musterLoop(ctx context.Context) {
	t := time.NewTicker(musterEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if err := c.cfg.Store.Dismiss(bye, c.self()); err != nil {
				c.log.DebugContext(ctx, "the others will miss this replica by themselves", "error", err)
			}
			return
		case <-t.C:
			c.muster(ctx)
		}
	}
}
