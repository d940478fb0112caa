package field

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestF15 is "the definition changed between doing and undoing". G6: the undo is prepared at the moment of success.
func TestF15(t *testing.T) {
	t.Parallel()
	s := start(t, chain(), "")
	id := s.create()
	s.completed(id, 1)
	done := s.kinds(id)
	require.Len(t, done, 3)

	// Version 2: another refund path, other names in extract, no shipping any more.
	require.Zero(t, s.ebb.Stop())
	files := chain().with(sim.Billing, func(d *file) { d.after = "[fraudCheck]" }).texts()
	delete(files, "shipping.yaml")
	v2 := strings.NewReplacer("/refund", "/reversal", "high-value-processing/{cid}/cancel", "high-value-processing/{chargeNumber}/reversal", "cid", "chargeNumber")
	files["billing.yaml"] = v2.Replace(files["billing.yaml"])
	require.Contains(t, files["billing.yaml"], "{chargeNumber}/reversal")
	harness.RewriteDestinations(t, s.dir, files)
	s.ebb.Restart()
	require.Equal(t, "true", s.text(`SELECT removed::text FROM ebb.destinations WHERE name = 'shipping' ORDER BY version DESC LIMIT 1`))

	s.cancel(id)
	s.await(id, "CANCELLED")
	undo := map[sim.Kind]sim.Kind{sim.HighValue: sim.HighValueCancel, sim.Charge: sim.Refund}[done[2]]
	require.Equal(t, append(done, undo, sim.ShipmentCancel, sim.StockRelease), s.kinds(id))
	refund := s.sameCalls(id, sim.Billing, sim.Undo, 1)[0]
	require.NotContains(t, refund.Target, "reversal")
	s.sameCalls(id, sim.Shipping, sim.Undo, 1) // the removed one is still cancelled
	s.sameCalls(id, sim.Inventory, sim.Undo, 1)

	// An order of now has the new plan.
	after := s.create()
	s.await(after, "CONFIRMED")
	require.Equal(t, map[string]string{"inventory do": "SUCCEEDED", "fraudCheck do": "SUCCEEDED", "billing do": "SUCCEEDED"}, s.states(after))

	// A consumer of its own for the removed destination is no mistake; one for a destination that never was is.
	s.second(sim.Shipping)
	out, code := s.run("consumer", "--destination", "warehouse", "--destinations", s.dir)
	require.Equal(t, 2, code)
	require.Contains(t, out, "no file in")

	// A version that is missing cannot be: the database keeps those that steps are pinned to.
	_, err := s.ebb.DB().Exec(t.Context(), `DELETE FROM ebb.destinations WHERE name = 'shipping'`)
	require.ErrorContains(t, err, "immutable")
	s.oracle()
}
