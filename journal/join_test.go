package journal

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A destination of a Go program lives beside the set of files: applying files leaves it as it is, and it is part of the plans.
func TestJoinedDestinationsStayWhenFilesAreApplied(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("b"))
	ends := func(context.Context) (map[TopicPartition]int64, error) {
		return map[TopicPartition]int64{{"orders", 0}: 10}, nil
	}
	crm := dest("crm", "a")
	got, err := b.Join(t.Context(), crm, ends, FromNow)
	require.NoError(t, err)
	require.Equal(t, Change{"crm", Added, 1}, got)
	got, err = b.Join(t.Context(), crm, ends, FromNow)
	require.NoError(t, err)
	require.Equal(t, Change{"crm", Unchanged, 1}, got)

	changes, err := b.Apply(t.Context(), []Destination{dest("a")}, ends, FromNow, false)
	require.NoError(t, err)
	require.Equal(t, []Change{{"a", Unchanged, 1}, {"b", Removed, 2}}, changes)
	names := func(offset int64) (out []string) {
		for _, p := range b.catalog.plan("OrderCreated", Position{Topic: "orders", Offset: offset}) {
			out = append(out, p.Dest)
		}
		return out
	}
	require.Equal(t, []string{"a", "b"}, names(9))
	require.Equal(t, []string{"a", "crm"}, names(10))

	v, err := b.Latest(t.Context(), "crm")
	require.NoError(t, err)
	require.Equal(t, KindGo, v.Kind)
	got, err = b.Leave(t.Context(), "crm", ends)
	require.NoError(t, err)
	require.Equal(t, Change{"crm", Removed, 2}, got)
	got, err = b.Leave(t.Context(), "crm", ends)
	require.NoError(t, err)
	require.Equal(t, Change{"crm", Unchanged, 2}, got)
	require.Equal(t, []string{"a"}, names(10))
}

// A create event that only a Go program takes has a plan that is not empty.
func TestAGoProgramMayTakeTheCreateEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Join(t.Context(), dest("crm"), noEnds, FromEarliest)
	require.NoError(t, err)
	_, err = b.Apply(t.Context(), []Destination{dest("mail").on("OrderStatusUpdated")}, noEnds, FromNow, false)
	require.NoError(t, err)
}

func TestNamesAndEdgesOfBothKindsAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	join := func(d Destination) error {
		_, err := b.Join(t.Context(), d, noEnds, FromNow)
		return err
	}
	require.ErrorIs(t, join(dest("a")), ErrOtherKind)
	require.ErrorIs(t, join(dest("crm", "ledger")), ErrUnknownAfter)
	require.NoError(t, join(dest("crm", "a")))
	require.NoError(t, join(dest("erp", "crm")))
	require.ErrorIs(t, join(dest("crm", "erp")), ErrCycle)

	_, err := b.Apply(t.Context(), []Destination{dest("a"), dest("crm")}, noEnds, FromNow, false)
	require.ErrorIs(t, err, ErrOtherKind)
	_, err = b.Apply(t.Context(), []Destination{dest("a", "erp")}, noEnds, FromNow, false)
	require.ErrorIs(t, err, ErrCycle)
	require.ErrorContains(t, err, "a after erp after crm after a")
	_, err = b.Apply(t.Context(), []Destination{dest("a")}, noEnds, FromNow, true)
	require.NoError(t, err)

	_, err = b.Leave(t.Context(), "a", noEnds)
	require.ErrorIs(t, err, ErrOtherKind)
	_, err = b.Leave(t.Context(), "nobody", noEnds)
	require.ErrorIs(t, err, ErrUnknownVersion)
}
