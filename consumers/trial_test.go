package consumers_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

func no(context.Context, consumers.Call, int) consumers.Ended {
	return consumers.Ended{Class: saga.ClassRefused, Reason: "status 422", Exchange: journal.Exchange{Sent: true, Status: 422}}
}

func oneAtATime(c *consumers.Config) { c.Concurrency = 1 }

// Five refusals and nothing else are our deploy, not five customers: the rest of the orders waits for an operator.
func TestFirstResultsAllRefusedPauseTheDestination(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.on(no)
	run := b.start(oneAtATime)
	b.create(1, 8)
	b.until(func() (bool, string) {
		return b.count("SELECT count(*) FROM ebb.paused_destinations") == 1 && b.count("SELECT count(*) FROM ebb.events") == 8, "not paused"
	})
	run.end()
	require.Equal(t, 5, b.world.count())
	require.Contains(t, b.logs.String(), "ebb destination resume billing")

	// An operator who says so is believed, by other processes too.
	require.NoError(t, b.store.Resume(t.Context(), destination, journal.Action{Who: "operator", Reason: "they are all on a list"}))
	run = b.start(oneAtATime)
	b.create(9, 14)
	b.until(func() (bool, string) {
		return b.count("SELECT count(*) FROM ebb.steps WHERE state = 'REFUSED'") == 14, "the others are not done"
	})
	run.end()
	require.Zero(t, b.count("SELECT count(*) FROM ebb.paused_destinations"))
}

func TestAVersionThatHasSucceededIsNotSuspected(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.start(oneAtATime)
	b.create(1, 1)
	b.awaitCompleted(1)
	run.end()
	b.world.on(no)
	run = b.start(oneAtATime) // this process knows of no success
	b.create(2, 8)
	b.until(func() (bool, string) {
		return b.count("SELECT count(*) FROM ebb.steps WHERE state = 'REFUSED'") == 7, "the others are not done"
	})
	run.end()
	require.Zero(t, b.count("SELECT count(*) FROM ebb.paused_destinations"))
}
