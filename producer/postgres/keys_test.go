package postgres_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/orders"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/postgres"
)

func keyed(key, content string) order.Request {
	return order.Request{
		Key: key, Hash: sha256.Sum256([]byte(content)),
		Respond: func(o order.Order) order.Response {
			return order.Response{Status: 201, Body: fmt.Appendf(nil, "{\"id\":%d,\"at\":%q}\n\x00\xff", o.ID, time.Now())}
		},
	}
}

func TestRepeatedKeyGivesTheFirstAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.store.Create(t.Context(), newOrder(t), keyed("k1", "a"))
	require.NoError(t, err)
	require.False(t, first.Replayed)
	for range 3 {
		again, err := b.store.Create(t.Context(), newOrder(t), keyed("k1", "a"))
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.False(t, again.Changed)
		require.Equal(t, first.Response, again.Response)
	}
	_, err = b.store.Create(t.Context(), newOrder(t), keyed("k1", "b"))
	require.ErrorIs(t, err, order.ErrKeyReused)
	_, err = b.store.Cancel(t.Context(), first.Order.ID, "x", keyed("k1", "cancel"))
	require.ErrorIs(t, err, order.ErrKeyReused)
	require.Equal(t, 1, b.count(t, "orders.orders"))
	require.Equal(t, 1, b.count(t, "orders.outbox"))
}

func TestKeysOfCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)
	first, err := b.store.Cancel(t.Context(), o.ID, "x", keyed("k", "cancel"))
	require.NoError(t, err)
	b.settle(t, o.ID, order.SagaCompensated)
	again, err := b.store.Cancel(t.Context(), o.ID, "x", keyed("k", "cancel"))
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.Response, again.Response)
}

func TestARefusedCallLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)
	_, err := b.store.UpdateStatus(t.Context(), o.ID, order.StatusShipped, keyed("k", "ship"))
	require.Error(t, err)
	b.settle(t, o.ID, order.SagaCompleted)
	result, err := b.store.UpdateStatus(t.Context(), o.ID, order.StatusShipped, keyed("k", "ship"))
	require.NoError(t, err)
	require.True(t, result.Changed)
}

func TestConcurrentCallsWithOneKeyMakeOneOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var (
		group   sync.WaitGroup
		results [8]order.Result
		errs    [8]error
	)
	for i := range results {
		group.Go(func() { results[i], errs[i] = b.store.Create(t.Context(), newOrder(t), keyed("same", "a")) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	made := 0
	for _, r := range results {
		if !r.Replayed {
			made++
		}
		require.Equal(t, results[0].Response, r.Response)
	}
	require.Equal(t, 1, made)
	require.Equal(t, 1, b.count(t, "orders.orders"))
	require.Equal(t, 1, b.count(t, "orders.outbox"))
}

// TestSecondCallWaitsForTheFirst holds the first call in its transaction until
// the second one is seen waiting, and lets the first end in both ways.
func TestSecondCallWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	for _, firstFails := range []bool{false, true} {
		t.Run(fmt.Sprint("first fails: ", firstFails), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			inside, proceed := make(chan struct{}), make(chan struct{})
			var calls atomic.Int32
			request := keyed("k", "a")
			answer := request.Respond
			request.Respond = func(o order.Order) order.Response {
				if calls.Add(1) == 1 {
					close(inside)
					<-proceed
					if firstFails {
						// An answer that cannot be stored rolls the call back.
						return order.Response{Status: 1 << 40}
					}
				}
				return answer(o)
			}
			var (
				group               sync.WaitGroup
				first, second       order.Result
				firstErr, secondErr error
			)
			group.Go(func() { first, firstErr = b.store.Create(t.Context(), newOrder(t), request) })
			<-inside
			group.Go(func() { second, secondErr = b.store.Create(t.Context(), newOrder(t), request) })
			waitForLockWaiter(t, b.pool)
			close(proceed)
			group.Wait()
			require.NoError(t, secondErr)
			require.Equal(t, 1, b.count(t, "orders.orders"))
			if firstFails {
				require.Error(t, firstErr)
				require.False(t, second.Replayed)
				return
			}
			require.NoError(t, firstErr)
			require.True(t, second.Replayed)
			require.Equal(t, first.Response, second.Response)
		})
	}
}

func waitForLockWaiter(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testkit.Eventually(t, func() (bool, string) {
		var waiting int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting == 1, fmt.Sprintf("%d wait for a lock, error %v", waiting, err)
	}, 0)
}

func TestMaintainPurgesOldKeysOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 4 {
		_, err := b.store.Create(t.Context(), newOrder(t), keyed(fmt.Sprint("k", i), "a"))
		require.NoError(t, err)
	}
	_, err := b.pool.Exec(t.Context(), `UPDATE orders.request_keys SET created_at = created_at - interval '6 days' WHERE key = 'k1';
		UPDATE orders.request_keys SET created_at = created_at - interval '8 days' WHERE key IN ('k2', 'k3')`)
	require.NoError(t, err)
	require.NoError(t, b.store.Maintain(t.Context()))
	require.Equal(t, 2, b.count(t, "orders.request_keys"))

	short, err := postgres.New(postgres.Config{Pool: b.pool, Encoder: orders.Encoder{}, KeyRetention: time.Hour})
	require.NoError(t, err)
	require.NoError(t, short.Maintain(t.Context()))
	require.Equal(t, 1, b.count(t, "orders.request_keys"))
}
