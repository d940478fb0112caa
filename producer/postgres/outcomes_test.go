package postgres_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/producer/order"
)

func outcomeOf(o order.Order, kind order.Trigger, revision int64) order.Outcome {
	return order.Outcome{OrderID: o.ID, SagaID: o.CreatedEvent, Kind: kind, Revision: revision, Reason: "because"}
}

func TestApplyOutcomesInOneBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second, third := b.create(t), b.create(t), b.create(t)
	cancelled, err := b.store.Cancel(t.Context(), third.ID, "x", order.Request{})
	require.NoError(t, err)
	require.True(t, cancelled.Changed)
	batch := []order.Outcome{
		outcomeOf(second, order.SagaParked, 1),
		outcomeOf(first, order.SagaCompleted, 1),
		outcomeOf(third, order.SagaCompleted, 1),
		{OrderID: first.ID, SagaID: uuid.NewString(), Kind: order.SagaCompensated, Revision: 9},
		outcomeOf(second, order.SagaResumed, 2),
		outcomeOf(second, order.SagaParked, 1),
		{OrderID: 999, SagaID: uuid.NewString(), Kind: order.SagaCompleted, Revision: 1},
		outcomeOf(third, order.SagaCompensated, 3),
		outcomeOf(second, order.SagaCompensated, 3),
		outcomeOf(third, order.SagaParked, 4),
	}
	effects, err := b.store.ApplyOutcomes(t.Context(), batch)
	require.NoError(t, err)
	require.Equal(t, []order.Effect{
		order.Applied, order.Applied, order.Applied, order.OtherSaga, order.Applied,
		order.Stale, order.UnknownOrder, order.Applied, order.Applied, order.Applied,
	}, effects)

	want := map[int64]order.Order{
		first.ID:  {Status: order.StatusConfirmed, SagaRevision: 1},
		second.ID: {Status: order.StatusRejected, SagaRevision: 3},
		third.ID:  {Status: order.StatusCancelled, SagaRevision: 4, Attention: "because"},
	}
	for id, w := range want {
		got, err := b.store.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, w.Status, got.Status)
		require.Equal(t, w.SagaRevision, got.SagaRevision)
		require.Equal(t, w.Attention, got.Attention)
	}
	require.Equal(t, 4, b.count(t, "orders.outbox"), "outcomes write no event")

	again, err := b.store.ApplyOutcomes(t.Context(), batch)
	require.NoError(t, err)
	for i, effect := range again {
		require.NotEqual(t, order.Applied, effect, "outcome %d", i)
	}
	none, err := b.store.ApplyOutcomes(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestUnstorableReasonDoesNotBlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)
	parked := outcomeOf(o, order.SagaParked, 1)
	parked.Reason = "bad \x00 byte \xff"
	_, err := b.store.ApplyOutcomes(t.Context(), []order.Outcome{parked})
	require.NoError(t, err)
	got, err := b.store.Get(t.Context(), o.ID)
	require.NoError(t, err)
	require.Equal(t, "bad   byte \uFFFD", got.Attention)
}

// TestBatchesOfTheSameOrdersDoNotDeadlock applies shuffled batches at once.
func TestBatchesOfTheSameOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var batch []order.Outcome
	for range 20 {
		batch = append(batch, outcomeOf(b.create(t), order.SagaCompleted, 1))
	}
	var (
		group   sync.WaitGroup
		errs    [6]error
		applied [6]int
	)
	for i := range errs {
		mine := append([]order.Outcome(nil), batch...)
		rand.Shuffle(len(mine), func(a, b int) { mine[a], mine[b] = mine[b], mine[a] })
		group.Go(func() {
			var effects []order.Effect
			effects, errs[i] = b.store.ApplyOutcomes(t.Context(), mine)
			for _, effect := range effects {
				if effect == order.Applied {
					applied[i]++
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	total := 0
	for _, n := range applied {
		total += n
	}
	require.Equal(t, 20, total)
}
