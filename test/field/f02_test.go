package field

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// unanswered are the ways in which a call ends without our knowing whether it was done, by order id: (a) the reply is lost, (b) the
// effect lands after our timeout, (c) the head says 200 and the body never ends.
func unanswered(times int) map[string]sim.Fault {
	hang := sim.Duration(1800 * time.Millisecond) // longer than our timeout
	out := map[string]sim.Fault{
		"1": {Action: sim.Lose},
		"2": {Action: sim.Hang, At: sim.HangBefore, Duration: hang},
		"3": {Action: sim.StallBody, Duration: hang},
	}
	for id, f := range out {
		f.Destination, f.Direction, f.Aggregate, f.Next = sim.Billing, sim.Do, id, times
		out[id] = f
	}
	return out
}

// TestF02 is "retries used up with the outcome unknown, filed as 'it never happened'". G3: what may have happened counts as such
// until there is a definite answer; G9: nothing is COMPENSATED while its charge may live.
func TestF02(t *testing.T) {
	t.Parallel()
	short := func(d *file) { d.timeout, d.attempts = "400ms", 3 }
	never := func(d *file) { d.timeout, d.idempotent = "1s", "false" }

	t.Run("abc repeat until it is definite", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, short), "")
		for _, f := range unanswered(4) { // one more than there are attempts
			s.faults(f)
		}
		ids := []string{s.create(), s.create(), s.create()}
		for _, id := range ids {
			s.await(id, "CONFIRMED")
			require.GreaterOrEqual(t, len(s.sameCalls(id, sim.Billing, sim.Do, -1)), 5)
			require.Len(t, s.effects(id, sim.Billing, ""), 1)
			s.firstReplyIsKept(id)
		}
		s.oracle()
	})

	t.Run("a a saga that fails meanwhile", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, short), "")
		s.faults(unanswered(0)["1"]) // for ever
		id := s.create()
		s.until(func() (bool, string) { return len(s.calls(id, sim.Billing, sim.Do)) > 0, "not called" })
		healthy := s.create()
		s.await(healthy, "CONFIRMED") // so that the losses are the step's own, not an outage
		s.until(func() (bool, string) {
			row := s.step(id, sim.Billing, "do")
			return row.Attempt > 3, "attempts: " + row.State
		})
		s.cancel(id)
		s.until(func() (bool, string) { return s.saga(id).State == "COMPENSATING", s.saga(id).State })
		calls := len(s.calls(id, sim.Billing, sim.Do))
		s.until(func() (bool, string) { return len(s.calls(id, sim.Billing, sim.Do)) > calls, "not asked again" })
		require.Equal(t, "COMPENSATING", s.saga(id).State)
		require.Empty(t, s.effects(id, sim.Shipping, sim.Undo), "what the charge depended on stays until the charge is known")
		s.heal()
		s.await(id, "CANCELLED")

		require.Equal(t, []sim.Kind{
			sim.StockHold, sim.Shipment, sim.HighValue, sim.HighValueCancel, sim.ShipmentCancel, sim.StockRelease,
		}, s.kinds(id))
		s.sameCalls(id, sim.Billing, sim.Do, -1)
		s.sameCalls(id, sim.Billing, sim.Undo, 1)
		s.oracle()
	})

	t.Run("abc park with the key in hand", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, never), "")
		for _, f := range unanswered(0) {
			s.faults(f)
		}
		ids := []string{s.create(), s.create(), s.create()}
		for _, id := range ids {
			s.awaitAttention(id, "billing do parked: may have happened")
			key := s.sagaID(id) + ":billing:do"
			require.Equal(t, key, s.sameCalls(id, sim.Billing, sim.Do, 1)[0].Key)
			require.Equal(t, stepRow{State: "PARKED", Maybe: true, Attempt: 1, Epoch: 1}, s.step(id, sim.Billing, "do"))
			out, code := s.run("saga", "show", id)
			require.Zero(t, code, out)
			require.Contains(t, out, key)
			out, code = s.run("saga", "retry", s.sagaID(id), "billing", "do", "--reason", "try again")
			require.Equal(t, refused, code, out)
			require.Contains(t, out, "not idempotent")
			out, code = s.run("saga", "done", s.sagaID(id), "inventory", "do", "--reference", "none", "--reason", "it is done already")
			require.Equal(t, refused, code, out)
			s.cancel(id) // what is unwound must not be called compensated either
		}
		for _, id := range ids {
			s.until(func() (bool, string) { return s.saga(id).State == "COMPENSATING", s.saga(id).State })
			require.Equal(t, "CANCELLING", s.order(id).Status)
			s.awaitAttention(id, "billing do parked")
			s.until(func() (bool, string) { return len(s.effects(id, sim.Billing, "")) == 1, "the charge has not landed" })
			require.Empty(t, s.calls(id, "", sim.Undo), "everything depends on a charge that may live")
		}
		s.heal()
		passed := s.create()
		s.await(passed, "CONFIRMED")
		for _, id := range ids {
			s.sameCalls(id, sim.Billing, sim.Do, 1)
			require.Equal(t, "COMPENSATING", s.saga(id).State)
			// The operator finds the charge by the key, and what the gateway shows of it is enough to undo it.
			reply := filepath.Join(t.TempDir(), "charge.json")
			require.NoError(t, os.WriteFile(reply, fmt.Appendf(nil, `{"processingId":%[1]q,"transaction":{"id":%[1]q}}`, s.effects(id, sim.Billing, sim.Do)[0].Thing), 0o600))
			out, code := s.run("saga", "resolve", s.sagaID(id), "billing", "--happened", "--reply", reply, "--reason", "seen at the gateway")
			require.Zero(t, code, out)
			s.await(id, "CANCELLED")
			s.until(func() (bool, string) { return s.order(id).Attention == nil, "the order still wants attention" })
			require.Len(t, s.effects(id, sim.Billing, sim.Undo), 1)
			require.Equal(t, []sim.Kind{sim.ShipmentCancel, sim.StockRelease}, s.kinds(id)[4:], "in reverse")
			require.Equal(t, "resolve billing do as happened: seen at the gateway", s.text(
				`SELECT action || ': ' || reason FROM ebb.operator_actions WHERE target = $1`, s.sagaID(id)))
		}
		s.oracle()
	})

	t.Run("an operator sees that it did not happen", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain().with(sim.Billing, never), "")
		s.faults(sim.Fault{Destination: sim.Billing, Direction: sim.Do, Action: sim.ReplyWith, Status: 500})
		id := s.create()
		s.awaitAttention(id, "billing do parked: may have happened")
		s.heal()
		out, code := s.run("saga", "resolve", s.sagaID(id), "billing", "--not-happened", "--reason", "not in the gateway's list")
		require.Zero(t, code, out)
		s.await(id, "CONFIRMED")
		s.sameCalls(id, sim.Billing, sim.Do, 2)
		require.Len(t, s.effects(id, sim.Billing, ""), 1)
		out, code = s.run("saga", "compensate", s.sagaID(id), "--reason", "the customer is on a list")
		require.Zero(t, code, out)
		s.await(id, "REJECTED")
		out, code = s.run("saga", "compensate", s.sagaID(id), "--reason", "again")
		require.Equal(t, refused, code, out)
		s.oracle()
	})

	t.Run("d connection refused", func(t *testing.T) {
		t.Parallel()
		s := start(t, chain(), "")
		s.faults(sim.Fault{Destination: sim.Billing, Action: sim.RefuseConnection, Mode: sim.RefuseByClosing})
		id := s.create()
		s.until(func() (bool, string) {
			row := s.step(id, sim.Billing, "do")
			return row.Epoch > 5 && row.State == "READY" && row.Attempt == 0, fmt.Sprintf("claims are few, or charged: %+v", row)
		})
		require.Equal(t, "RUNNING", s.saga(id).State)
		s.cancel(id)
		s.await(id, "CANCELLED")

		row := s.step(id, sim.Billing, "do")
		require.Equal(t, "ABANDONED", row.State)
		require.False(t, row.Maybe)
		s.heal()
		passed := s.create() // billing can be reached again, and has had its time to be sent something of the first order
		s.await(passed, "CONFIRMED")
		require.Empty(t, s.calls(id, sim.Billing, ""))
		require.Equal(t, []sim.Kind{sim.StockHold, sim.Shipment, sim.ShipmentCancel, sim.StockRelease}, s.kinds(id))
		s.oracle()
	})
}
