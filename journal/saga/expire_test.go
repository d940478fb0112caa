package saga_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// A step that ends its worker each time must not be sent for ever: patience ends it too.
func TestG09ExpiryHasPatienceToo(t *testing.T) {
	t.Parallel()
	for _, dir := range []saga.Direction{saga.Do, saga.Undo} {
		for name, c := range map[string]struct {
			now  saga.Instant
			want saga.StepState
		}{
			"within patience": {early + 10, saga.Ready},
			"beyond patience": {early.Add(time.Hour), saga.Parked},
		} {
			t.Run(dir.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				state := saga.Running
				if dir == saga.Undo {
					state = saga.Compensating
				}
				a, step := attempt(state, dir, &saga.Rules{Idempotency: saga.Idempotent, MaxAttempts: 3, MaxUndoAttempts: 3, Patience: time.Minute}, false, 1)
				step.FirstAttempt, step.Lease = early, early+1
				require.NoError(t, a.Expire(saga.Env{Now: c.now}, a.Sagas[0].ID, step.Dest, dir))
				require.Equal(t, c.want, step.State)
				require.True(t, step.Maybe)
			})
		}
	}
}
