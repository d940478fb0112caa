package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/postgres"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/orders"
)

type bundle struct {
	store *postgres.Store
	pool  *pgxpool.Pool
	dsn   string
}

func setup(t *testing.T) bundle {
	t.Helper()
	dsn := testkit.DB(t)
	require.NoError(t, postgres.Migrate(t.Context(), dsn))
	pool := testkit.Pool(t, dsn)
	store, err := postgres.New(postgres.Config{Pool: pool, Encoder: orders.Encoder{}})
	require.NoError(t, err)
	return bundle{store: store, pool: pool, dsn: dsn}
}

func newOrder(t *testing.T) order.New {
	t.Helper()
	amount, err := order.ParseAmount("99.90", 2)
	require.NoError(t, err)
	return order.New{CustomerID: "customer-1", Amount: amount, Currency: "EUR", ShippingType: order.Domestic}
}

func (b bundle) create(t *testing.T) order.Order {
	t.Helper()
	result, err := b.store.Create(t.Context(), newOrder(t), order.Request{})
	require.NoError(t, err)
	require.True(t, result.Changed)
	return result.Order
}

// settle applies one outcome of the order's own saga with the next revision.
func (b bundle) settle(t *testing.T, id int64, kind order.Trigger) order.Order {
	t.Helper()
	o, err := b.store.Get(t.Context(), id)
	require.NoError(t, err)
	effects, err := b.store.ApplyOutcomes(t.Context(), []order.Outcome{{OrderID: id, SagaID: o.CreatedEvent, Kind: kind, Revision: o.SagaRevision + 1}})
	require.NoError(t, err)
	require.Equal(t, []order.Effect{order.Applied}, effects)
	o, err = b.store.Get(t.Context(), id)
	require.NoError(t, err)
	return o
}

type outboxRow struct {
	ID, AggregateID, Type, TraceParent string
	Payload                            map[string]any
	Version                            int64
}

func (b bundle) outbox(t *testing.T) []outboxRow {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `SELECT id::text, aggregateid, type, coalesce(traceparent, ''), payload, version FROM orders.outbox WHERE aggregatetype = 'order' ORDER BY aggregateid, version`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (out outboxRow, err error) {
		var payload []byte
		if err := r.Scan(&out.ID, &out.AggregateID, &out.Type, &out.TraceParent, &payload, &out.Version); err != nil {
			return out, err
		}
		return out, json.Unmarshal(payload, &out.Payload)
	})
	require.NoError(t, err)
	return all
}

func (b bundle) count(t *testing.T, table string) int {
	t.Helper()
	var n int
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestCreate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	result, err := b.store.Create(t.Context(), newOrder(t), order.Request{TraceParent: trace})
	require.NoError(t, err)
	o := result.Order
	require.Equal(t, order.StatusPending, o.Status)
	require.Equal(t, int64(1), o.Version)
	require.Equal(t, "99.90", o.Amount.String())
	require.Equal(t, time.UTC, o.CreatedAt.Location())

	stored, err := b.store.Get(t.Context(), o.ID)
	require.NoError(t, err)
	require.Equal(t, o, stored)

	rows := b.outbox(t)
	require.Len(t, rows, 1)
	require.Equal(t, o.CreatedEvent, rows[0].ID)
	require.Equal(t, o.Number(), rows[0].AggregateID)
	require.Equal(t, "OrderCreated", rows[0].Type)
	require.Equal(t, trace, rows[0].TraceParent)
	require.Equal(t, int64(1), rows[0].Version)
	require.Equal(t, "customer-1", rows[0].Payload["CustomerID"])
}

func TestCreateKeepsEveryDigit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct {
		text  string
		scale int
	}{{"999999999999999.9999", 4}, {"0.001", 3}, {"900719925474099", 0}, {"0.01", 2}} {
		n := newOrder(t)
		var err error
		n.Amount, err = order.ParseAmount(tt.text, tt.scale)
		require.NoError(t, err)
		result, err := b.store.Create(t.Context(), n, order.Request{})
		require.NoError(t, err)
		got, err := b.store.Get(t.Context(), result.Order.ID)
		require.NoError(t, err)
		require.Equal(t, tt.text, got.Amount.String())
		require.Equal(t, n.Amount, got.Amount)
	}
}

func TestG01NothingIsStoredWhenTheEventCannotBeEncoded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)
	failing, err := postgres.New(postgres.Config{Pool: b.pool, Encoder: orders.Encoder{Fail: errors.New("no schema")}})
	require.NoError(t, err)
	_, err = failing.Create(t.Context(), newOrder(t), order.Request{Key: "k"})
	require.ErrorContains(t, err, "encode OrderCreated: no schema")
	_, err = failing.Cancel(t.Context(), o.ID, "no", order.Request{Key: "k2"})
	require.ErrorContains(t, err, "encode OrderCancelled: no schema")

	require.Equal(t, 1, b.count(t, "orders.orders"))
	require.Equal(t, 1, b.count(t, "orders.outbox"))
	require.Zero(t, b.count(t, "orders.request_keys"))
	after, err := b.store.Get(t.Context(), o.ID)
	require.NoError(t, err)
	require.Equal(t, o, after)
}

func TestTheWholeLife(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)
	_, err := b.store.UpdateStatus(t.Context(), o.ID, order.StatusShipped, order.Request{})
	var refused *order.TransitionError
	require.ErrorAs(t, err, &refused)

	require.Equal(t, order.StatusConfirmed, b.settle(t, o.ID, order.SagaCompleted).Status)
	for _, to := range []order.Status{order.StatusShipped, order.StatusDelivered} {
		result, err := b.store.UpdateStatus(t.Context(), o.ID, to, order.Request{TraceParent: trace})
		require.NoError(t, err)
		require.True(t, result.Changed)
		require.Equal(t, to, result.Order.Status)
		again, err := b.store.UpdateStatus(t.Context(), o.ID, to, order.Request{})
		require.NoError(t, err)
		require.False(t, again.Changed)
		require.Equal(t, result.Order, again.Order)
	}
	_, err = b.store.Cancel(t.Context(), o.ID, "too late", order.Request{})
	require.ErrorAs(t, err, &refused)

	rows := b.outbox(t)
	require.Len(t, rows, 3)
	require.Equal(t, "OrderStatusUpdated", rows[1].Type)
	require.Equal(t, int64(2), rows[1].Version)
	require.Equal(t, "CONFIRMED", rows[1].Payload["OldStatus"])
	require.Equal(t, "SHIPPED", rows[1].Payload["NewStatus"])
	require.Equal(t, trace, rows[1].TraceParent)
	require.Equal(t, int64(3), rows[2].Version)
	require.Equal(t, "DELIVERED", rows[2].Payload["NewStatus"])
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)
	result, err := b.store.Cancel(t.Context(), o.ID, "changed my mind", order.Request{})
	require.NoError(t, err)
	require.True(t, result.Changed)
	require.Equal(t, order.StatusCancelling, result.Order.Status)
	again, err := b.store.Cancel(t.Context(), o.ID, "again", order.Request{})
	require.NoError(t, err)
	require.False(t, again.Changed)
	require.Equal(t, result.Order, again.Order)

	rows := b.outbox(t)
	require.Len(t, rows, 2)
	require.Equal(t, "OrderCancelled", rows[1].Type)
	require.Equal(t, int64(2), rows[1].Version)
	require.EqualValues(t, 2, rows[1].Payload["Version"])
	require.Equal(t, "changed my mind", rows[1].Payload["Reason"])
	require.Equal(t, order.StatusCancelled, b.settle(t, o.ID, order.SagaCompensated).Status)

	_, err = b.store.Cancel(t.Context(), 4711, "x", order.Request{})
	var missing *order.NotFoundError
	require.ErrorAs(t, err, &missing)
	var invalid *order.InvalidError
	_, err = b.store.Cancel(t.Context(), o.ID, "a\x00", order.Request{})
	require.ErrorAs(t, err, &invalid)
	_, err = b.store.UpdateStatus(t.Context(), o.ID, order.StatusConfirmed, order.Request{})
	require.ErrorAs(t, err, &invalid)
}

// TestShipAndCancelRace lets both commands start at once, many times: exactly
// one of them wins, and the events say so.
func TestShipAndCancelRace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 20 {
		o := b.create(t)
		b.settle(t, o.ID, order.SagaCompleted)
		var (
			group              sync.WaitGroup
			shipErr, cancelErr error
			start              = make(chan struct{})
		)
		group.Go(func() {
			<-start
			_, shipErr = b.store.UpdateStatus(t.Context(), o.ID, order.StatusShipped, order.Request{})
		})
		group.Go(func() {
			<-start
			_, cancelErr = b.store.Cancel(t.Context(), o.ID, "race", order.Request{})
		})
		close(start)
		group.Wait()
		require.NotEqual(t, shipErr == nil, cancelErr == nil, "ship: %v, cancel: %v", shipErr, cancelErr)
		after, err := b.store.Get(t.Context(), o.ID)
		require.NoError(t, err)
		require.Equal(t, int64(2), after.Version)
		require.Equal(t, shipErr == nil, after.Status == order.StatusShipped)
	}
	require.Equal(t, 40, b.count(t, "orders.outbox"))
}

func TestListPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []int64
	for i := range 7 {
		n := newOrder(t)
		n.CustomerID = fmt.Sprintf("customer-%d", i%2)
		result, err := b.store.Create(t.Context(), n, order.Request{})
		require.NoError(t, err)
		ids = append(ids, result.Order.ID)
	}
	list := func(f order.Filter) (got []int64) {
		for {
			page, next, err := b.store.List(t.Context(), f)
			require.NoError(t, err)
			for _, o := range page {
				got = append(got, o.ID)
			}
			if next == 0 {
				return got
			}
			require.Len(t, page, f.Limit)
			f.Before = next
		}
	}
	newest := []int64{ids[6], ids[5], ids[4], ids[3], ids[2], ids[1], ids[0]}
	require.Equal(t, newest, list(order.Filter{Limit: 3}))
	require.Equal(t, newest, list(order.Filter{Limit: 7}))
	require.Equal(t, newest, list(order.Filter{}))
	require.Equal(t, []int64{ids[5], ids[3], ids[1]}, list(order.Filter{Limit: 2, CustomerID: "customer-1"}))

	b.settle(t, ids[2], order.SagaParked)
	b.settle(t, ids[3], order.SagaCompensated)
	require.Equal(t, []int64{ids[2]}, list(order.Filter{Attention: true}))
	require.Equal(t, []int64{ids[3]}, list(order.Filter{Status: order.StatusRejected}))
	_, _, err := b.store.List(t.Context(), order.Filter{Limit: 501})
	require.Error(t, err)
}

func TestSoftDeleteIsRefusedWhileOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)
	var open *order.OpenError
	require.ErrorAs(t, b.store.SoftDelete(t.Context(), o.ID), &open)
	b.settle(t, o.ID, order.SagaParked)
	b.settle(t, o.ID, order.SagaCompensated)
	require.ErrorAs(t, b.store.SoftDelete(t.Context(), o.ID), &open)
	require.Equal(t, "parked", open.Attention)
	b.settle(t, o.ID, order.SagaResumed)
	require.NoError(t, b.store.SoftDelete(t.Context(), o.ID))

	var missing *order.NotFoundError
	_, err := b.store.Get(t.Context(), o.ID)
	require.ErrorAs(t, err, &missing)
	require.ErrorAs(t, b.store.SoftDelete(t.Context(), o.ID), &missing)
	_, err = b.store.Cancel(t.Context(), o.ID, "x", order.Request{})
	require.ErrorAs(t, err, &missing)
	page, _, err := b.store.List(t.Context(), order.Filter{})
	require.NoError(t, err)
	require.Empty(t, page)

	effects, err := b.store.ApplyOutcomes(t.Context(), []order.Outcome{{OrderID: o.ID, SagaID: o.CreatedEvent, Kind: order.SagaParked, Revision: 9}})
	require.NoError(t, err)
	require.Equal(t, []order.Effect{order.Applied}, effects, "news still reaches a deleted order")
}

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := postgres.New(postgres.Config{KeyRetention: -1})
	require.ErrorContains(t, err, "missing Pool")
	require.ErrorContains(t, err, "missing Encoder")
	require.ErrorContains(t, err, "KeyRetention")
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)

	t.Run("connection cut in the middle", func(t *testing.T) {
		b := bundle{store: nil, pool: testkit.Pool(t, b.dsn)}
		cutting, err := postgres.New(postgres.Config{Pool: b.pool, Encoder: cuttingEncoder{pool: b.pool}})
		require.NoError(t, err)
		_, err = cutting.Cancel(t.Context(), o.ID, "x", order.Request{})
		var gone *order.UnavailableError
		require.ErrorAs(t, err, &gone)
		require.False(t, gone.Maybe)
	})
	t.Run("nothing listens", func(t *testing.T) {
		pool := testkit.Pool(t, "postgres://nobody@127.0.0.1:1/none?connect_timeout=5")
		store, err := postgres.New(postgres.Config{Pool: pool, Encoder: orders.Encoder{}})
		require.NoError(t, err)
		_, err = store.Get(t.Context(), 1)
		var gone *order.UnavailableError
		require.ErrorAs(t, err, &gone)
	})
}

// cuttingEncoder ends all other connections to the database, the caller's too.
type cuttingEncoder struct {
	orders.Encoder
	pool *pgxpool.Pool
}

func (e cuttingEncoder) EncodeCancelled(ctx context.Context, v order.Cancelled) ([]byte, error) {
	_, err := e.pool.Exec(ctx, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'`)
	if err != nil {
		return nil, err
	}
	return e.Encoder.EncodeCancelled(ctx, v)
}
