package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/orders"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/postgres"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		os.Exit(crashChild())
	}
	testkit.Main(m)
}

func TestMigrateManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	dsn := testkit.DB(t)
	var (
		group sync.WaitGroup
		errs  [3]error
	)
	for i := range errs {
		group.Go(func() { errs[i] = postgres.Migrate(t.Context(), dsn) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	require.NoError(t, postgres.Migrate(t.Context(), dsn))
	var versions []int64
	rows, err := testkit.Pool(t, dsn).Query(t.Context(), "SELECT version_id FROM "+postgres.MigrationTable+" ORDER BY version_id")
	require.NoError(t, err)
	versions, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1, 2, 3}, versions)
}

func TestMigrateSaysWhatFailed(t *testing.T) {
	t.Parallel()
	err := postgres.Migrate(t.Context(), "postgres://nobody:hidden@127.0.0.1:1/none?connect_timeout=5")
	require.ErrorContains(t, err, "migrate orders")
	require.NotContains(t, err.Error(), "hidden")
}

func TestStatusesInTheTableAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := b.create(t)
	for _, status := range order.Statuses() {
		_, err := b.pool.Exec(t.Context(), "UPDATE orders.orders SET status = $2 WHERE id = $1", o.ID, string(status))
		require.NoError(t, err)
	}
	_, err := b.pool.Exec(t.Context(), "UPDATE orders.orders SET status = 'PROCESSING' WHERE id = $1", o.ID)
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "orders_status_known", pg.ConstraintName)
	_, err = b.pool.Exec(t.Context(), "UPDATE orders.orders SET total_amount = 1.234 WHERE id = $1", o.ID)
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "orders_total_amount_in_scale", pg.ConstraintName)
}

// TestProducerRoleIsEnough runs the service's whole work as a login role that is
// only a member of ebb_producer.
func TestProducerRoleIsEnough(t *testing.T) {
	t.Parallel()
	b := setup(t)
	role := testkit.Name(t, "service")
	_, err := b.pool.Exec(t.Context(), fmt.Sprintf("CREATE ROLE %s NOLOGIN IN ROLE ebb_producer", role))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := b.pool.Exec(context.Background(), "DROP ROLE "+role)
		require.NoError(t, err)
	})
	config := b.pool.Config().Copy()
	config.ConnConfig.RuntimeParams["role"] = role
	limited, err := newPool(t, config)
	require.NoError(t, err)
	store, err := postgres.New(postgres.Config{Pool: limited, Encoder: orders.Encoder{}})
	require.NoError(t, err)
	mine := bundle{store: store, pool: limited}
	o := mine.create(t)
	_, err = store.Create(t.Context(), newOrder(t), keyed("k", "a"))
	require.NoError(t, err)
	mine.settle(t, o.ID, order.SagaCompensated)
	require.NoError(t, store.SoftDelete(t.Context(), o.ID))
	require.NoError(t, store.Maintain(t.Context()))
	_, err = limited.Exec(t.Context(), "DELETE FROM orders.outbox")
	require.Error(t, err)
}
