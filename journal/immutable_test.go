package journal

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Steps are pinned to versions of destinations: the database keeps them whatever is asked of it.
func TestVersionsOfDestinationsAreImmutable(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	for _, sql := range []string{"UPDATE ebb.destinations SET hash = 'x'", "DELETE FROM ebb.destinations", "TRUNCATE ebb.destinations CASCADE"} {
		_, err := b.pool.Exec(t.Context(), sql)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, sql)
		require.Equal(t, "23001", refused.Code, sql)
		require.Contains(t, refused.Hint, "ebb config apply")
	}
	removed, err := b.Retired(t.Context())
	require.NoError(t, err)
	require.Empty(t, removed)
	_, err = b.Apply(t.Context(), []Destination{dest("b")}, noEnds, FromNow, false)
	require.NoError(t, err)
	removed, err = b.Retired(t.Context())
	require.NoError(t, err)
	require.Len(t, removed, 1)
	require.Equal(t, "a", removed[0].Name)
	require.Equal(t, []byte("destination: a"), removed[0].Source)
}
