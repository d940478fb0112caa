package journal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMusterAgreesOnPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	muster := func(worker string) [2]int {
		place, of, err := b.Muster(t.Context(), worker, "consumer a", time.Minute)
		require.NoError(t, err)
		return [2]int{place, of}
	}
	require.Equal(t, [2]int{0, 1}, muster("w2"))
	require.Equal(t, [2]int{0, 2}, muster("w1"))
	_, of, err := b.Muster(t.Context(), "w0", "consumer b", time.Minute)
	require.NoError(t, err)
	require.Equal(t, 1, of, "another role")
	require.Equal(t, [2]int{1, 2}, muster("w2"))
	_, err = b.pool.Exec(t.Context(), "UPDATE ebb.workers SET seen_at = clock_timestamp() - interval '2 min' WHERE id = 'w1'")
	require.NoError(t, err)
	require.Equal(t, [2]int{0, 1}, muster("w2"), "nobody has seen it for long")
	require.Equal(t, [2]int{0, 2}, muster("w1"))
	require.NoError(t, b.Dismiss(t.Context(), "w1"))
	require.Equal(t, [2]int{0, 1}, muster("w2"))
}
