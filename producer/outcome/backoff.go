package outcome

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// backoff is a doubling wait with jitter.
type backoff struct {
	least, most, now time.Duration
}

func (c *consumer) newBackoff() *backoff {
	return &backoff{least: c.cfg.RetryMin, most: c.cfg.RetryMax, now: c.cfg.RetryMin}
}

func (b *backoff) reset() { b.now = b.least }

// next waits, from half of the present step to all of it, and returns ctx's
// error if that ends first.
func (b *backoff) next(ctx context.Context) error {
	timer := time.NewTimer(b.now/2 + rand.N(b.now/2+1))
	defer timer.Stop()
	b.now = min(2*b.now, b.most)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// persist calls try until it says that it is done or ctx ends. While it is not
// done its error is logged as an outage.
func (c *consumer) persist(ctx context.Context, operation string, try func() (done bool, err error)) error {
	wait := c.newBackoff()
	for {
		done, err := try()
		if done {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.cfg.Observe(ObservedRetry, 1)
		c.log.WarnContext(ctx, "outcome consumer: trying again", slog.String("operation", operation), slog.Any("error", err))
		if err := wait.next(ctx); err != nil {
			return err
		}
	}
}
