package journal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A paused destination is sent nothing, whichever transaction would claim; what it is given waits.
func TestPausedDestinationIsNotClaimed(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("c", "a"), dest("b"))
	require.NoError(t, b.Pause(t.Context(), "b", by))
	require.NoError(t, b.Pause(t.Context(), "c", by))
	require.ErrorIs(t, b.Pause(t.Context(), "b", by), ErrPaused)
	require.ErrorIs(t, b.Pause(t.Context(), "x", by), ErrUnknownVersion)
	require.ErrorIs(t, b.Pause(t.Context(), "a", Action{}), ErrNoReason)
	require.ErrorIs(t, b.Resume(t.Context(), "a", by), ErrNotPaused)

	o := &offering{places: 9}
	got, err := b.Ingest(t.Context(), Intake{
		Reader: reader("b"), Claim: o.offer("b", 1),
		Records: []Record{{Position: Position{"orders", 0, 1}, Event: event(1, "OrderCreated", "7", 1)}},
	})
	require.NoError(t, err)
	require.Empty(t, got[0].Claimed)
	b.read("a", event(1, "OrderCreated", "7", 1))
	b.read("c", event(1, "OrderCreated", "7", 1))
	require.Empty(t, b.claim("b"))
	require.Empty(t, b.onward(o, success(b.claim("a")[0])))
	require.Equal(t, "READY", b.saga(1).state("c", "do"))

	paused, err := b.Paused(t.Context())
	require.NoError(t, err)
	require.Len(t, paused, 2)
	require.Equal(t, by.Reason, paused["b"].Reason)
	wakes, stop := b.Wakes("b")
	defer stop()
	require.NoError(t, b.Resume(t.Context(), "b", by))
	<-wakes
	require.Len(t, b.claim("b"), 1)
	require.NoError(t, b.Resume(t.Context(), "c", by))
	require.Len(t, b.claim("c"), 1)
	require.Equal(t, "operator: resume destination: seen at the destination", b.actions()[3])
}
