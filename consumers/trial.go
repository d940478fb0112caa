package consumers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// trialLength is how many first results of a version must all be refusals for it to be suspected.
const trialLength = 5

// trial watches the first results of each version of a destination: if all of them are refusals, it is rather our new file that is
// wrong than so many customers, and each refusal unwinds an order.
type trial struct {
	mu       sync.Mutex
	refusals map[int]int // by version; more than trialLength for one that is trusted
}

// result takes in how an attempt ended, and tells whether the version is to be suspected now.
func (t *trial) result(version int, c saga.Class) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refusals == nil {
		t.refusals = map[int]int{}
	}
	switch n := t.refusals[version]; {
	case n > trialLength:
		return false
	case c == saga.ClassSucceeded:
		t.refusals[version] = trialLength + 1
		return false
	case c == saga.ClassRefused:
		t.refusals[version]++
		return n+1 == trialLength
	}
	return false
}

// trust ends the trial of a version in this process.
func (t *trial) trust(version int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusals[version] = trialLength + 1
}

// suspect pauses the destination, unless the version has proven itself elsewhere or an operator has let it go on.
func (c *Consumer) suspect(ctx context.Context, version int) {
	ctx = context.WithoutCancel(ctx)
	defer c.trial.trust(version)
	on, err := c.cfg.Store.OnTrial(ctx, c.cfg.Destination, version)
	if err == nil && on {
		why := fmt.Sprintf("the first %d results of version %d were all refusals; if its file is right, go on with `ebb destination resume %s --reason TEXT`",
			trialLength, version, c.cfg.Destination)
		err = c.cfg.Store.Pause(ctx, c.cfg.Destination, journal.Action{Who: "ebb", Reason: why})
		c.log.WarnContext(ctx, "destination is paused", "reason", why)
	}
	if err != nil && !errors.Is(err, journal.ErrPaused) {
		c.log.ErrorContext(ctx, "a suspect version could not be paused", "version", version, "error", err)
	}
}
