package field

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// noticesEveryEvent is a destination that both events of an order reach.
const noticesEveryEvent = `destination: notifications
on: [OrderCreated, OrderStatusUpdated]
base_url: "${env:NOTIFICATIONS_URL}"
auth: { bearer: "${env:FIELD_TOKEN}" }
idempotent: true
timeout: 8s
concurrency: 10
request:
  method: POST
  url: /api/notifications/status-update
  body: { orderId: "{event:$.orderId}", oldStatus: "BEFORE", newStatus: "AFTER", timestamp: "2026-01-02T03:04:05Z" }
revert: none
retry: { max_attempts: 4, base: 40ms, max: 200ms }
patience: 15m
`

// TestF20 is "offset committed over unfinished work". G2: a record is durable in the journal before the offset passes it; G8: events
// of one order reach a destination in their order; G12.
func TestF20(t *testing.T) {
	t.Parallel()
	s := &stack{t: t, sim: harness.StartSim(t)}
	s.dir = harness.WriteDestinations(t, map[string]string{"notifications": noticesEveryEvent})
	s.ebb = harness.Start(t, harness.Options{
		Sim: s.sim, Destinations: s.dir, Partitions: 1, Env: []string{"EBB_LOG_LEVEL=debug", "FIELD_TOKEN=" + canary},
	})
	s.orders = s.ebb.Orders()
	const orders = 10
	s.faults(sim.Fault{Destination: sim.Notifications, Aggregate: "5", Action: sim.Hang, At: sim.HangBefore, Next: 1})
	for range orders {
		s.create()
	}
	second := s.statusUpdated(5)
	for n := 1; n <= orders; n++ {
		if n != 5 {
			s.await(fmt.Sprint(n), "CONFIRMED")
		}
	}
	// The others are done, and the group's offset has passed order 5, which is still out: it is in the journal.
	s.read(harness.Group("notifications"))
	require.Equal(t, "CALLING", s.step("5", "notifications", "do").State)
	require.Equal(t, "2", s.text(`SELECT count(*)::text FROM ebb.sagas WHERE aggregate_id = '5'`))
	require.Equal(t, "WAITING", s.text(`SELECT state FROM ebb.steps WHERE saga_id = $1::uuid`, second))
	s.ebb.Kill()
	s.restart()
	s.await("5", "CONFIRMED")
	s.until(func() (bool, string) {
		state := s.text(`SELECT state FROM ebb.sagas WHERE id = $1::uuid`, second)
		return state == "COMPLETED", state
	})

	for n := 1; n <= orders; n++ {
		if n != 5 {
			s.once(fmt.Sprint(n), sim.Notifications, 1)
		}
	}
	calls := s.calls("5", sim.Notifications, sim.Do)
	require.Len(t, calls, 3)
	require.Equal(t, calls[0].Key, calls[1].Key)
	require.Equal(t, second+":notifications:do", calls[2].Key)
	require.Equal(t, "true", s.text(`SELECT bool_and(c.recorded_at < t.first_attempt_at)::text FROM ebb.calls c, ebb.steps t
		WHERE c.saga_id = $1::uuid AND t.saga_id = $2::uuid`, s.sagaID("5"), second), "the second event was sent before the first had ended")
	require.Len(t, s.effects("5", sim.Notifications, sim.Do), 2)
	s.oracle()
}

// statusUpdated writes the event that moves an order, as its second version, and gives its id. The order service would not do that
// before the first is done.
func (s *stack) statusUpdated(order int64) string {
	s.t.Helper()
	a, ok := s.ebb.Addresses()
	require.True(s.t, ok)
	registry, err := schemas.NewClient(schemas.ClientConfig{URLs: a.Registry})
	require.NoError(s.t, err)
	defer registry.Close()
	payload, err := schemas.NewCodec(registry).Encode(s.t.Context(), schemas.OrderStatusUpdated{
		OrderID: order, OldStatus: "PENDING", NewStatus: "CONFIRMED", At: time.Now().UTC(),
	})
	require.NoError(s.t, err)
	id := stream.EventID(1)
	c, _ := s.ebb.Kafka()
	require.NoError(s.t, c.ProduceSync(s.t.Context(), &kgo.Record{
		Topic: schemas.TopicOrder, Key: fmt.Append(nil, order), Value: payload, Headers: stream.Headers(id, schemas.EventOrderStatusUpdated, 2),
	}).FirstErr())
	return id
}
