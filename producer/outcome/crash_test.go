package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/failpoint"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/outcome"
	"github.com/ebbline/ebb/producer/postgres"
)

// crashEnv makes the test binary a child that runs the consumer:
// "<DSN> <broker>".
const crashEnv = "EBB_OUTCOME_CRASH_CHILD"

func crashChild() int {
	var dsn, broker string
	if _, err := fmt.Sscan(os.Getenv(crashEnv), &dsn, &broker); err != nil {
		panic(err)
	}
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	store, err := postgres.New(postgres.Config{Pool: pool, Encoder: encoder{}})
	if err != nil {
		panic(err)
	}
	err = outcome.Run(context.Background(), outcome.Config{
		Brokers: []string{broker}, Store: store, Decoder: &decoder{},
		DeadLetter: func(context.Context, outcome.DeadLetter) error { return errors.New("none expected") },
	})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestKilledAroundTheCommit kills the consumer at both sides of the database's
// commit: no offset has moved, and the next consumer ends where an undisturbed
// one would have (G2, G11, G12).
func TestKilledAroundTheCommit(t *testing.T) {
	t.Parallel()
	for where, afterwards := range map[string]order.Status{
		"before_commit": order.StatusPending,
		"after_commit":  order.StatusConfirmed,
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			o := b.create()
			b.send(o, order.SagaCompleted, 1)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), crashEnv+"="+b.dsn+" "+b.cluster.ListenAddrs()[0], failpoint.EnvVar+"=producer.outcome."+where+"=kill")
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Run(), &exit)
			require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
			require.Equal(t, afterwards, b.status(o.ID))
			committed, _ := b.offsets()
			require.Zero(t, committed)

			// A second process need not wait until the first one's session ends.
			cfg := b.config()
			cfg.Group = group + ".next"
			b.start(cfg)
			b.waitFor(o.ID, order.StatusConfirmed)
			if afterwards == order.StatusConfirmed {
				b.waitSeen(string(order.Stale), 1)
			} else {
				b.waitSeen(string(order.Applied), 1)
			}
			require.Empty(t, b.deadLetters())
		})
	}
}
