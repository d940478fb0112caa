package consumers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// claimedAhead brings ten orders into a consumer of two places whose destination was quick and does not answer now.
func claimedAhead(t *testing.T, change func(*consumers.Config)) (*bundle, *running) {
	t.Helper()
	b := setup(t)
	run := b.start(func(c *consumers.Config) {
		c.Concurrency, c.Ahead = 2, time.Minute
		change(c)
	})
	b.create(1, 1)
	b.awaitCompleted(1)
	b.world.on(func(ctx context.Context, c consumers.Call, _ int) consumers.Ended {
		if b.world.held(ctx) != nil {
			return consumers.Ended{Class: saga.ClassUnknown, Reason: "cut off", Exchange: journal.Exchange{Sent: true}}
		}
		return b.world.yes(c)
	})
	b.create(2, 11)
	b.until(func() (bool, string) {
		claimed := b.count("SELECT count(*) FROM ebb.steps WHERE state = 'CALLING'")
		out, _ := b.world.inFlight()
		return claimed == 10 && out == 2, fmt.Sprintf("%d claimed, %d called", claimed, out)
	})
	return b, run
}

func TestClaimsAheadWaitForTheirPlace(t *testing.T) {
	t.Parallel()
	b, run := claimedAhead(t, func(c *consumers.Config) { c.LeaseMargin = time.Minute })
	b.world.open()
	b.awaitCompleted(11)
	run.end()
	_, most := b.world.inFlight()
	require.Equal(t, 2, most)
	require.Equal(t, 11, b.world.count())
	require.Equal(t, 11, b.count("SELECT count(*) FROM ebb.steps WHERE epoch = 1"), "each was claimed once")
}

// G10: what waits for a place at the stop was not sent and is not charged.
func TestG10ClaimsAheadAreGivenBackAtTheStop(t *testing.T) {
	t.Parallel()
	b, run := claimedAhead(t, func(c *consumers.Config) { c.Grace = 50 * time.Millisecond })
	run.end()
	require.Equal(t, 3, b.world.count())
	require.Equal(t, 8, b.count("SELECT count(*) FROM ebb.steps WHERE state = 'READY' AND attempt = 0 AND epoch = 1 AND NOT maybe"))
}

// A claim that finds no place in time goes back to the queue, for somebody who has one.
func TestClaimsAheadThatFindNoPlaceAreGivenBack(t *testing.T) {
	t.Parallel()
	b, run := claimedAhead(t, func(c *consumers.Config) { c.LeaseMargin = 300 * time.Millisecond })
	b.until(func() (bool, string) {
		back := b.count("SELECT count(*) FROM ebb.steps WHERE epoch > 1 OR epoch = 1 AND attempt = 0")
		return back == 8, fmt.Sprintf("%d given back", back)
	})
	b.world.open()
	b.awaitCompleted(11)
	run.end()
	require.Equal(t, 11, b.world.count())
}
