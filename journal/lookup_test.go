package journal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// G3: what may have happened at a destination that must not be asked to do it again is looked up, and that nothing is found counts once
// nothing can be under way any more.
func TestG03StepThatMayHaveHappenedIsLookedUp(t *testing.T) {
	t.Parallel()
	asked := dest("a")
	asked.Rules.Idempotency, asked.Rules.Lookup = saga.NotIdempotent, true
	b := setup(t, asked)
	b.read("a", event(1, "OrderCreated", "7", 1))
	require.False(t, b.do("a", saga.Result{Class: saga.ClassUnknown, Reason: "no answer"}).Asking)
	require.Equal(t, "RESOLVING", b.saga(1).state("a", "do"))

	look := b.claim("a")
	require.Len(t, look, 1)
	require.True(t, look[0].Asking)
	require.Equal(t, 1, look[0].Attempt, "a lookup is not charged")
	require.Equal(t, "call a", string(look[0].Content))
	nothing := saga.Result{Class: saga.ClassNotFound, Reason: "status 404"}
	require.NoError(t, b.end(look[0], nothing))
	require.Equal(t, "RESOLVING", b.saga(1).state("a", "do"), "the request may still land")
	require.Empty(t, b.claim("a"), "it is asked again when that is over")

	_, err := b.pool.Exec(t.Context(), "UPDATE ebb.steps SET sent_until = clock_timestamp() - interval '1s', next_attempt_at = clock_timestamp()")
	require.NoError(t, err)
	require.NoError(t, b.end(b.claim("a")[0], nothing))
	require.Equal(t, "READY", b.saga(1).state("a", "do"))
	again := b.claim("a")
	require.False(t, again[0].Asking)
	require.False(t, again[0].Maybe)
	require.Equal(t, 2, again[0].Attempt)

	// Accepted, and done later: the lookup brings the reply, and the undo request with it.
	require.NoError(t, b.end(again[0], saga.Result{Class: saga.ClassPending, Reason: "status 202"}))
	poll := b.claim("a")
	require.True(t, poll[0].Asking)
	require.NoError(t, b.end(poll[0], yes))
	require.Equal(t, "COMPLETED", b.saga(1).State)
	undo, err := b.Unsettled(t.Context(), eventID(1), "a", saga.Do)
	require.NoError(t, err)
	require.True(t, undo.Sent)
}
