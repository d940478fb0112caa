package saga_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// G10: while the destination's breaker is open, attempts are probes: they use up nothing, whatever others were answered before.
func TestG10ProbesOfAnOutageAreNotCharged(t *testing.T) {
	t.Parallel()
	for _, dir := range []saga.Direction{saga.Do, saga.Undo} {
		for _, class := range []saga.Class{saga.ClassRetry, saga.ClassUnknown, saga.ClassNotSent, saga.ClassMisconfigured} {
			t.Run(dir.String()+" "+class.String(), func(t *testing.T) {
				t.Parallel()
				state := saga.Running
				if dir == saga.Undo {
					state = saga.Compensating
				}
				rules := &saga.Rules{Idempotency: saga.Idempotent, MaxAttempts: 2, MaxUndoAttempts: 2}
				a, step := attempt(state, dir, rules, false, 1)
				env := saga.Env{Now: early}
				for n := range 10 {
					require.NoError(t, a.Record(env, a.Sagas[0].ID, step.Dest, dir, step.Epoch, saga.Result{Class: class, Outage: true}))
					require.Equal(t, saga.Ready, step.State, "probe %d", n)
					require.True(t, step.Outage)
					require.Zero(t, step.Attempt)
					env.Now = step.Due
					_, err := a.Claim(env, a.Sagas[0].ID, step.Dest, dir, "w", env.Now+1)
					require.NoError(t, err)
				}
				require.NoError(t, a.Record(env, a.Sagas[0].ID, step.Dest, dir, step.Epoch, saga.Result{Class: saga.ClassRetry, Healthy: true}))
				require.Equal(t, saga.Ready, step.State, "the first attempt after the outage is the first")
				require.Equal(t, 1, step.Attempt)
				require.False(t, step.Outage)
			})
		}
	}
}
