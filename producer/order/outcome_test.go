package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ebbline/ebb/producer/order"
)

// TestRepeatedOutcomesChangeNothing replays every prefix of a random history
// once more after it: the order must not notice.
func TestRepeatedOutcomesChangeNothing(t *testing.T) {
	t.Parallel()
	kind := rapid.SampledFrom([]order.Trigger{order.SagaCompleted, order.SagaCompensated, order.SagaParked, order.SagaResumed})
	rapid.Check(t, func(t *rapid.T) {
		o := orderIn(rapid.SampledFrom(order.Statuses()).Draw(t, "status"))
		o.SagaRevision = 0
		kinds := rapid.SliceOfN(kind, 1, 12).Draw(t, "kinds")
		for i, k := range kinds {
			next, _, err := o.Apply(order.Outcome{SagaID: saga, Kind: k, Revision: int64(i + 1)})
			require.NoError(t, err)
			o = next
		}
		for i, k := range kinds {
			again, effect, err := o.Apply(order.Outcome{SagaID: saga, Kind: k, Revision: int64(i + 1)})
			require.NoError(t, err)
			require.Equal(t, order.Stale, effect)
			require.Equal(t, o, again)
		}
	})
}

// TestNoWayOutOfAFinalStatus mixes commands and outcomes at random.
func TestNoWayOutOfAFinalStatus(t *testing.T) {
	t.Parallel()
	trigger := rapid.SampledFrom([]order.Trigger{
		order.Ship, order.Deliver, order.Cancel,
		order.SagaCompleted, order.SagaCompensated, order.SagaParked, order.SagaResumed,
	})
	rapid.Check(t, func(t *rapid.T) {
		o := orderIn(order.StatusPending)
		o.SagaRevision = 0
		for i, k := range rapid.SliceOfN(trigger, 1, 30).Draw(t, "triggers") {
			before := o
			switch k {
			case order.Ship, order.Deliver, order.Cancel:
				var changed bool
				o, changed, _ = o.Command(k)
				require.Equal(t, changed, before.Version+1 == o.Version)
			default:
				o, _, _ = o.Apply(order.Outcome{SagaID: saga, Kind: k, Revision: int64(i + 1)})
				require.Equal(t, before.Version, o.Version)
			}
			if before.Status.Final() {
				require.Equal(t, before.Status, o.Status)
			}
			if o.Status == order.StatusShipped {
				require.Contains(t, []order.Status{order.StatusConfirmed, order.StatusShipped}, before.Status)
			}
		}
	})
}
