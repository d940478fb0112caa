package harness_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

func TestUpEndsOrdersAndTheOracleAgrees(t *testing.T) {
	t.Parallel()
	s := harness.StartSim(t)
	e := harness.Start(t, harness.Options{Sim: s, Partitions: 3})
	orders := e.Orders()
	good := orders.Create("good", harness.Order{})
	again := orders.Create("good", harness.Order{})
	require.Equal(t, good, again, "one client key is one order")
	bad := orders.Create("bad", harness.Order{Customer: "refuse-billing", Amount: "99.99"})
	gone := orders.Create("gone", harness.Order{})
	orders.AwaitOrder(gone, "CONFIRMED")
	orders.Cancel("cancel-gone", gone)
	orders.AwaitAllEnded(3)
	require.Equal(t, "CONFIRMED", orders.Get(good).Status)
	require.Equal(t, "REJECTED", orders.AwaitOrder(bad, "REJECTED").Status)
	require.Equal(t, "COMPENSATED", orders.AwaitOrder(gone, "CANCELLED").Saga().State)
	require.Equal(t, []string{"stock_hold", "shipment", "shipment_cancel", "stock_release"}, s.Kinds(bad))
	harness.Oracle(t, e, s)
	harness.LIFO(t, s)
	harness.Rerun(t, e, s)
	require.Zero(t, e.Stop())
}

func TestKilledAtAFailpointAndRestarted(t *testing.T) {
	t.Parallel()
	s := harness.StartSim(t)
	dir := harness.WriteDestinations(t, harness.Fixture())
	e := harness.Start(t, harness.Options{Sim: s, Destinations: dir, Partitions: 1, Failpoints: "consumers.after-reply=kill"})
	id := e.Orders().Create("o", harness.Order{})
	e.WaitLine("failpoint consumers.after-reply: kill")
	require.Equal(t, -1, e.Wait())
	e.Restart()
	e.Orders().AwaitOrder(id, "CONFIRMED")
	require.Equal(t, 1, s.SummaryOf(id).Charges.Made)
	harness.Oracle(t, e, s)
}

func TestRolesInProcessesOfTheirOwn(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a9e"
	files := harness.Fixture()
	for name := range files {
		files[name] += "auth: { bearer: \"${env:HARNESS_TOKEN}\" }\n"
	}
	s := harness.StartSim(t)
	infra := harness.StartInfra(t, harness.Options{
		Sim: s, Destinations: harness.WriteDestinations(t, files), Partitions: 2, Env: []string{"HARNESS_TOKEN=" + canary},
	})
	producer := harness.StartRole(t, infra, "producer")
	written := []*harness.Process{producer.Process}
	for _, role := range []string{"relay", "compensator"} {
		written = append(written, harness.StartRole(t, infra, role).Process)
	}
	for _, d := range []string{"inventory", "fraudCheck", "shipping", "billing"} {
		written = append(written, harness.StartRole(t, infra, "consumer", "--destination", d).Process)
	}
	orders := harness.OrdersAt(infra, producer)
	id := orders.Create("o", harness.Order{Customer: "refuse-billing"})
	require.Equal(t, "REJECTED", orders.AwaitOrder(id, "REJECTED").Status)
	orders.AwaitAllEnded(1)
	harness.Oracle(t, infra, s)
	calls := s.Calls(sim.Filter{})
	require.Equal(t, "Bearer "+canary, calls[0].Header.Get("Authorization"))
	harness.Canary(t, infra, canary, written...)
	out, code := infra.CLI("saga", "show", id)
	require.Zero(t, code, out)
	require.Contains(t, out, "COMPENSATED")
	for _, p := range written {
		require.Zero(t, p.Stop(), p.Name())
	}
}

func TestFrozenAndKilledWithItsDatabase(t *testing.T) {
	t.Parallel()
	s := harness.StartSim(t)
	e := harness.Start(t, harness.Options{Sim: s, Embedded: true, Partitions: 1})
	id := e.Orders().Create("o", harness.Order{})
	e.Pause()
	e.Continue()
	e.Orders().AwaitOrder(id, "CONFIRMED")
	require.NotZero(t, e.PostgresPID())
	e.KillWithPostgres()
	require.Zero(t, e.PostgresPID())
	e.Restart()
	require.Equal(t, "CONFIRMED", e.Orders().Get(id).Status)
	harness.Oracle(t, e, s)
	_, err := os.Stat(e.Data())
	require.NoError(t, err)
}
