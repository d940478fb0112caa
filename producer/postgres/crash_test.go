package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/failpoint"
	"github.com/ebbline/ebb/internal/testkit/orders"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/postgres"
)

// crashEnv makes the test binary a child that does one thing with the store:
// "<DSN> <what> <order id>".
const crashEnv = "EBB_PRODUCER_CRASH_CHILD"

func newPool(t *testing.T, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(pool.Close)
	}
	return pool, err
}

func crashChild() int {
	ctx := context.Background()
	var (
		dsn, what string
		id        int64
	)
	if _, err := fmt.Sscan(os.Getenv(crashEnv), &dsn, &what, &id); err != nil {
		panic(err)
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	store, err := postgres.New(postgres.Config{Pool: pool, Encoder: orders.Encoder{}})
	if err != nil {
		panic(err)
	}
	if err := crashWork(ctx, store, what, id); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func crashWork(ctx context.Context, store *postgres.Store, what string, id int64) error {
	var err error
	switch what {
	case "create":
		amount, _ := order.ParseAmount("5", 2)
		_, err = store.Create(ctx, order.New{CustomerID: "crash", Amount: amount, Currency: "EUR", ShippingType: order.Domestic}, keyed("crash", "a"))
	case "cancel":
		_, err = store.Cancel(ctx, id, "crash", keyed("crash", "a"))
	case "outcome":
		var o order.Order
		if o, err = store.Get(ctx, id); err == nil {
			_, err = store.ApplyOutcomes(ctx, []order.Outcome{outcomeOf(o, order.SagaCompleted, 1)})
		}
	}
	return err
}

// TestG01KilledAroundTheCommit kills the process right before and right after the
// commit: order, event and request key are there together or not at all (G1,
// G12), and a repetition ends where one undisturbed call would have ended.
func TestG01KilledAroundTheCommit(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"create", "cancel", "outcome"} {
		for _, where := range []string{"before_commit", "after_commit"} {
			t.Run(what+"/"+where, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				o := b.create(t)
				run := func(failpoints string) error {
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), crashEnv+"="+b.dsn+" "+what+" "+strconv.FormatInt(o.ID, 10), failpoint.EnvVar+"="+failpoints)
					return cmd.Run()
				}
				var exit *exec.ExitError
				require.ErrorAs(t, run("producer."+what+"."+where+"=kill"), &exit)
				require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
				checkCrash(t, b, o, what, where == "after_commit")
				require.NoError(t, run(""))
				checkCrash(t, b, o, what, true)
			})
		}
	}
}

func checkCrash(t *testing.T, b bundle, o order.Order, what string, done bool) {
	t.Helper()
	n := 0
	if done {
		n = 1
	}
	after, err := b.store.Get(t.Context(), o.ID)
	require.NoError(t, err)
	switch what {
	case "create":
		require.Equal(t, 1+n, b.count(t, "orders.orders"))
		require.Equal(t, 1+n, b.count(t, "orders.outbox"))
		require.Equal(t, n, b.count(t, "orders.request_keys"))
	case "cancel":
		require.Equal(t, done, after.Status == order.StatusCancelling)
		require.Equal(t, 1+n, b.count(t, "orders.outbox"))
		require.Equal(t, n, b.count(t, "orders.request_keys"))
	case "outcome":
		require.Equal(t, done, after.Status == order.StatusConfirmed)
		require.Equal(t, 1, b.count(t, "orders.outbox"))
	}
}
