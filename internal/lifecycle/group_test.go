package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// until waits for the end of the group.
func until(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Whoever ends first ends all, and its error is the group's: a role that has died must not leave a process that only looks alive.
func TestTheFirstToEndStopsTheRest(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		end  error
		want string
	}{
		"without an error":        {nil, ""},
		"with an error":           {broken, "first: broken"},
		"cancelled by a context":  {fmt.Errorf("a call of its own: %w", context.Canceled), "first: a call of its own: context canceled"},
		"with the end of its ctx": {context.DeadlineExceeded, "first: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g Group
			var ended atomic.Int32
			rest := func(ctx context.Context) error {
				err := until(ctx)
				ended.Add(1)
				return err
			}
			g.Add("second", rest)
			g.Add("first", func(context.Context) error { return tc.end })
			g.Add("third", func(ctx context.Context) error { return errors.Join(rest(ctx), errors.New("and more")) })
			err := g.Run(t.Context())
			require.EqualValues(t, 2, ended.Load(), "all have ended")
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.want)
		})
	}
}

// A signal is no failure, whatever the actors say about being stopped by it.
func TestAStopIsNoError(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var g Group
	running := make(chan struct{}, 2)
	for _, name := range []string{"a", "b"} {
		g.Add(name, func(ctx context.Context) error {
			running <- struct{}{}
			return fmt.Errorf("reading: %w", until(ctx))
		})
	}
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	<-running
	<-running
	stop()
	require.NoError(t, <-done)
}
