package sim

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRateText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{"0": 0, "1": 10000, "0.3": 3000, "0.30": 3000, "0.0005": 5, "1.0000": 10000} {
		got, err := ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseRate(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "2", "1.1", "-0.1", "0.", ".5", "0.12345", "0,3", "3e-1", "1.0001", "00.1"} {
		_, err := ParseRate(text)
		require.Error(t, err, text)
	}
	var s Settings
	require.NoError(t, json.Unmarshal([]byte(`{"rates":{"billing.charge":0.30,"billing.refund":"0.1"}}`), &s))
	require.Equal(t, map[string]Rate{RateCharge: 3000, RateRefund: 1000}, s.Rates)
	require.Error(t, json.Unmarshal([]byte(`{"rates":{"billing.charge":30}}`), &s))
}

func TestSettingsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"latency":{"billing":"5ms"}}`, `{"latency":{"billing":"5ms..20ms"}}`,
		`{"idempotency":{"billing":"on","shipping":"off"}}`, `{"idempotency":{"billing":"success_only","shipping":"24h0m0s"}}`,
		`{"refuse":{"billing":["7"]}}`,
	} {
		var s Settings
		require.NoError(t, json.Unmarshal([]byte(text), &s), text)
		require.NoError(t, s.validate())
		require.Equal(t, text, compact(t, s))
	}
	for _, text := range []string{
		`{"latency":{"billing":"5"}}`, `{"latency":{"billing":"20ms..5ms"}}`, `{"idempotency":{"billing":"maybe"}}`,
		`{"idempotency":{"billing":"-1h"}}`,
	} {
		var s Settings
		require.Error(t, json.Unmarshal([]byte(text), &s), text)
	}
	err := Settings{Rates: map[string]Rate{"billing.charg": 1, RateRefund: 20000}, Refuse: map[string][]string{"crm": nil}}.validate()
	require.ErrorContains(t, err, "billing.charg")
	require.ErrorContains(t, err, "20000")
	require.ErrorContains(t, err, "crm")
}

func TestSettingsChangeAtRunTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.charge(t, "1", "1")
	now, err := b.client.ChangeSettings(t.Context(), Settings{Rates: map[string]Rate{"*": 10000, RateRefund: 0}})
	require.NoError(t, err)
	require.Equal(t, rateOne, now.Rates[RateReserve])
	require.Zero(t, now.Rates[RateRefund])
	require.Zero(t, now.Refusals[Billing], "what is not named stays")
	r := b.post(t, "/api/billing", "2", "2", billingBody)
	require.Equal(t, 503, r.status)
	require.Equal(t, "5", r.header.Get("Retry-After"))
	require.Equal(t, "payment_gateway_unavailable", r.at(t, "error"))
	r = b.post(t, "/api/fraud/check", "2", "2", "{}")
	require.Equal(t, 429, r.status)
	require.Equal(t, "10", r.header.Get("Retry-After"))
	require.Equal(t, "10", r.at(t, "retryAfter"))

	got, err := b.client.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, now, got)
	_, err = b.client.ChangeSettings(t.Context(), Settings{Rates: map[string]Rate{"nope": 1}})
	var api *APIError
	require.ErrorAs(t, err, &api)
	require.Equal(t, 422, api.Status)
}

func TestShippedRates(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{
		"inventory.reserve": "0.05", "inventory.release": "0.1", "fraudCheck.check": "0.05",
		"shipping.domestic.create": "0.05", "shipping.domestic.cancel": "0.1",
		"shipping.international.create": "0.1", "shipping.international.cancel": "0.1",
		"billing.charge": "0.3", "billing.refund": "0.1", "highValue.process": "0.2", "highValue.cancel": "0.1",
		"notifications.send": "0",
	}, func() map[string]string {
		out := map[string]string{}
		for k, r := range DefaultSettings().Rates {
			out[k] = r.String()
		}
		return out
	}())
}

func TestRatesAreMetAndRepeatable(t *testing.T) {
	t.Parallel()
	hits := func(seed uint64) (out []int) {
		for i := range 10000 {
			if Rate(3000).hits(seed, "billing.charge", strconv.Itoa(i), "1") {
				out = append(out, i)
			}
		}
		return out
	}
	first := hits(1)
	require.InDelta(t, 3000, len(first), 200)
	require.Equal(t, first, hits(1))
	require.NotEqual(t, first, hits(2))
	require.False(t, Rate(0).hits(1, "x"))
	require.True(t, rateOne.hits(1, "x"))
}

func TestTwentyDemoOrdersShowRefusalsEverywhere(t *testing.T) {
	t.Parallel()
	refusedBy := map[string][]int{}
	var refused []int
	for order := 1; order <= 20; order++ {
		for _, d := range Destinations() {
			if DefaultSettings().Refusals[d].hits(defaultSeed, "refuse", d, strconv.Itoa(order), "OrderCreated") {
				refusedBy[d], refused = append(refusedBy[d], order), append(refused, order)
			}
		}
	}
	require.Len(t, slices.Compact(refused), 5, "%v", refusedBy)
	require.Len(t, refusedBy, 4, "%v", refusedBy)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	paths := map[string][2]string{
		Inventory:     {"/api/inventory/reserve", "out_of_stock"},
		FraudCheck:    {"/api/fraud/check", "fraud_declined"},
		Shipping:      {"/api/domestic-shipping", "address_undeliverable"},
		Billing:       {"/api/billing", "card_declined"},
		Notifications: {"/api/notifications/status-update", "recipient_unsubscribed"},
	}
	const text = `{"orderId":7,"amount":1,"oldStatus":"A","newStatus":"B"}`
	refused := func(t *testing.T, b *testBundle, order, body string) (by []string) {
		for _, d := range Destinations() {
			r := b.post(t, paths[d][0], "e-"+order+":"+d+":do", order, body)
			if r.status == 422 {
				require.Equal(t, paths[d][1], r.at(t, "code"))
				by = append(by, d)
			} else {
				require.Equal(t, 200, r.status, r.body)
			}
		}
		return by
	}
	t.Run("by rule", func(t *testing.T) {
		t.Parallel()
		b := setup(t, func(c *Config) { c.Settings.Refuse = map[string][]string{"*": {"7"}, Shipping: {"8", "9"}} })
		require.Equal(t, []string{Inventory, FraudCheck, Billing, Notifications}, refused(t, b, "7", text))
		require.Equal(t, []string{Shipping}, refused(t, b, "8", text))
		_, err := b.client.ChangeSettings(t.Context(), Settings{Refuse: map[string][]string{Billing: {"10"}}})
		require.NoError(t, err)
		require.Equal(t, []string{Billing}, refused(t, b, "10", text))
		require.Equal(t, []string{Shipping}, refused(t, b, "8", text), "a refusal is remembered")
	})
	t.Run("by marker, for the whole order and after a restart", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		r := b.post(t, "/api/domestic-shipping", "s", "7", `{"customerId":"ann refuse-billing refuse-inventory"}`)
		require.Equal(t, 200, r.status)
		require.NoError(t, b.sim.Close())
		b = reopen(t, b.path)
		require.Equal(t, []string{Inventory, Billing}, refused(t, b, "7", text))
		require.Equal(t, []string{FraudCheck}, refused(t, b, "refuse-fraudCheck-1", text))
		require.Empty(t, refused(t, b, "8", text))
	})
	t.Run("by chance", func(t *testing.T) {
		t.Parallel()
		b := setup(t, func(c *Config) { c.Settings.Refusals = map[string]Rate{"*": 0, Shipping: 10000} })
		require.Equal(t, []string{Shipping}, refused(t, b, "7", text))
		require.Equal(t, 200, b.post(t, "/api/domestic-shipping/succeed", "", "7", text).status)
	})
}

func TestLatency(t *testing.T) {
	t.Parallel()
	l := Latency{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond}
	for n := range uint64(1000) {
		d := l.pick(draw(1, strconv.FormatUint(n, 10)))
		require.GreaterOrEqual(t, d, l.Min)
		require.LessOrEqual(t, d, l.Max)
	}
	b := setup(t, func(c *Config) {
		c.Settings.Latency = map[string]Latency{Billing: {time.Microsecond, time.Millisecond}, Shipping: {time.Hour, time.Hour}}
	})
	b.charge(t, "k", "7")
	cut := make(chan error, 1)
	go func() {
		_, err := b.try("POST", "/api/domestic-shipping", "s", "7", "{}")
		cut <- err
	}()
	until(t, "the slow call", func() bool { return b.sim.Stats().Calls == 2 })
	require.NoError(t, b.client.Reset(t.Context()), "a reset does not wait for slow calls")
	require.Error(t, <-cut)
	require.Zero(t, b.sim.Stats().Effects)
}
