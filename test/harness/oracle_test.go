package harness_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// An oracle that never speaks proves nothing: each case breaks one thing behind the pipeline's back, and is put right again.
func TestOracleSpeaks(t *testing.T) {
	t.Parallel()
	s := harness.StartSim(t)
	s.Unchecked()
	e := harness.Start(t, harness.Options{Sim: s, Partitions: 1})
	orders := e.Orders()
	good := orders.Create("good", harness.Order{})
	bad := orders.Create("bad", harness.Order{Customer: "refuse-billing"})
	orders.AwaitAllEnded(2)
	harness.AwaitCaughtUp(t, e)
	harness.Oracle(t, e, s)

	exec := func(sql string, args ...any) {
		t.Helper()
		tag, err := e.DB().Exec(t.Context(), sql, args...)
		require.NoError(t, err, sql)
		require.Positive(t, tag.RowsAffected(), sql)
	}
	const ofOrder = ` WHERE saga_id = (SELECT created_event FROM orders.orders WHERE id = $1::bigint)`
	step := func(set, id, destination, direction string) func() {
		return func() {
			exec("UPDATE ebb.steps SET "+set+ofOrder+" AND destination = $2 AND direction = $3", id, destination, direction)
		}
	}
	status := func(id, status string) func() {
		return func() { exec("UPDATE orders.orders SET status = $2 WHERE id = $1::bigint", id, status) }
	}
	state := func(id, state string) func() {
		return func() {
			exec("UPDATE ebb.sagas SET state = $2 WHERE id = (SELECT created_event FROM orders.orders WHERE id = $1::bigint)", id, state)
		}
	}
	for _, tt := range []struct {
		name         string
		breaks, heal func()
		says         string
	}{
		{"an order with another end than its saga", status(bad, "CONFIRMED"), status(bad, "REJECTED"), `I2: the order is CONFIRMED, its saga "COMPENSATED"`},
		{"a saga that never ended", state(good, "RUNNING"), state(good, "COMPLETED"), `I2: the order is CONFIRMED, its saga "RUNNING"`},
		{"completed, though undone", state(bad, "COMPLETED"), state(bad, "COMPENSATED"), "the saga is COMPLETED, but stock_hold"},
		{"compensated, though standing", state(good, "COMPENSATED"), state(good, "COMPLETED"), "the saga is COMPENSATED, but shipment"},
		{
			"an effect whose step says it never happened", step("state = 'ABANDONED'", good, "shipping", "do"),
			step("state = 'SUCCEEDED'", good, "shipping", "do"), "has happened, but its step is ABANDONED",
		},
		{
			"a success without an effect", step("state = 'SUCCEEDED'", bad, "billing", "do"), step("state = 'REFUSED'", bad, "billing", "do"),
			"has succeeded without an effect",
		},
		{
			"a request without a claim", step("epoch = epoch - 1", good, "billing", "do"), step("epoch = epoch + 1", good, "billing", "do"),
			"G4: 1 requests for 0 claims",
		},
		{
			"a record that left no trace", step("destination = 'lost'", good, "fraudCheck", "do"),
			func() { exec("UPDATE ebb.steps SET destination = 'fraudCheck' WHERE destination = 'lost'") }, "I3: ebb.fraudCheck has passed",
		},
		{
			"Kafka ahead of the journal", func() { exec("UPDATE ebb.offsets SET next_offset = next_offset - 1 WHERE reader = 'ebb.billing'") },
			func() { exec("UPDATE ebb.offsets SET next_offset = next_offset + 1 WHERE reader = 'ebb.billing'") }, "I3: ebb.billing",
		},
		{"attention that nobody sees", func() { exec("UPDATE ebb.sagas SET attention = 'x' WHERE state = 'COMPLETED'") },
			func() { exec("UPDATE ebb.sagas SET attention = '' WHERE attention = 'x'") }, "I2: its saga waits for an operator (x)"},
	} {
		tt.breaks()
		require.Contains(t, strings.Join(harness.Judge(t, e, s), "\n"), tt.says, tt.name)
		tt.heal()
		require.Empty(t, harness.Judge(t, e, s), "healed after: %s", tt.name)
	}

	// The outside world cannot be healed: these come last.
	charge(t, s, good, "another key")
	said := strings.Join(harness.Judge(t, e, s), "\n")
	require.Contains(t, said, string(sim.TwoLive))
	require.Contains(t, said, `G3: call`)
	charge(t, s, "987654", "a key of nobody")
	require.Contains(t, strings.Join(harness.Judge(t, e, s), "\n"), "of order 987654, which nobody knows")
}

// charge charges an order behind the pipeline's back.
func charge(t *testing.T, s *harness.Sim, order, key string) {
	t.Helper()
	var url string
	for _, u := range s.URLs() {
		if at, ok := strings.CutPrefix(u, "BILLING_URL="); ok {
			url = at
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/billing", strings.NewReader(`{"amount":10.50,"currency":"USD"}`))
	require.NoError(t, err)
	req.Header.Set("X-Aggregate-Id", order)
	req.Header.Set("Idempotency-Key", key)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}
