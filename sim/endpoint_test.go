package sim

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForwardEndpoints(t *testing.T) {
	t.Parallel()
	const ship = `{"orderId":7,"customerId":"c-1","shippingType":"domestic"}`
	const note = `{"orderId":7,"oldStatus":"CONFIRMED","newStatus":"SHIPPED"}`
	for _, tt := range []struct {
		path, body string
		kind       Kind
		idAt       []string
		id         string
		fields     []string
	}{
		{
			"/api/inventory/reserve", `{"orderId":7,"items":[{"sku":"a","quantity":2.50}]}`, StockHold,
			[]string{"reservationId"}, "RES-7-1",
			[]string{"reservationId", "orderId", "warehouseId", "warehouse", "items", "shippingType", "status", "expiresAt", "reservedAt"},
		},
		{
			"/api/domestic-shipping", ship, Shipment, []string{"shipmentId"}, "SHIP-DOM-7-1",
			[]string{"shipmentId", "orderId", "customerId", "carrier", "trackingNumber", "shippingAddress", "cost", "status", "estimatedDelivery", "createdAt"},
		},
		{
			"/api/international-shipping", ship, Shipment, []string{"shipmentId"}, "SHIP-INTL-7-1",
			[]string{"customs", "insurance", "cost"},
		},
		{
			"/api/billing", billingBody, Charge, []string{"transaction", "id"}, "TXN-7-1",
			[]string{"status", "message", "transaction", "aggregateId", "timestamp"},
		},
		{
			"/api/high-value-processing", billingBody, HighValue, []string{"processingId"}, "HV-7-1",
			[]string{"status", "message", "processingId", "amount", "currency", "additionalVerification", "insuranceAdded", "signatureRequired", "timestamp"},
		},
		{
			"/api/notifications/shipping-confirmation", note, Notification, nil, "",
			[]string{"status", "notificationType", "orderId", "message", "timestamp"},
		},
		{"/api/notifications/review-request", note, Notification, nil, "", nil},
		{"/api/notifications/status-update", note, Notification, nil, "", nil},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.post(t, tt.path, "k-1", "7", tt.body)
			require.Equal(t, http.StatusOK, r.status, r.body)
			if tt.path == "/api/international-shipping" {
				for _, f := range []string{"declaration", "reference", "incoterms"} {
					r.at(t, "customs", f)
				}
				for _, f := range []string{"required", "value", "currency"} {
					r.at(t, "insurance", f)
				}
			}
			for _, f := range tt.fields {
				r.at(t, f)
			}
			if tt.id != "" {
				require.Equal(t, tt.id, r.at(t, tt.idAt...))
				require.Equal(t, tt.id, b.effects(t)[0].Thing)
			}
			require.Equal(t, []Kind{tt.kind}, kinds(b.effects(t)))
			require.Equal(t, "7", b.effects(t)[0].Aggregate)
			require.Empty(t, Check(b.effects(t)))
		})
	}
}

func TestMoneyIsKeptDigitForDigit(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"12345678.90", "9007199254740993", "0.10", "5800", "1.234", `"10.50"`, "1e2"} {
		t.Run(amount, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.post(t, "/api/billing", "k", "1", `{"amount":`+amount+`,"currency":"KWD"}`)
			require.Equal(t, 200, r.status, r.body)
			require.Contains(t, r.body, `"amount":`+amount+`,`)
			require.Equal(t, strings.Trim(amount, `"`), b.effects(t)[0].Amount)

			id := r.at(t, "transaction", "id")
			r = b.post(t, "/api/billing/"+id+"/refund", "u", "1", `{"amount":`+amount+`,"currency":"KWD"}`)
			require.Equal(t, 200, r.status, r.body)
			require.Contains(t, r.body, `"amount":`+amount+`,`)
			require.Empty(t, Check(b.effects(t)))
			sums, err := b.client.Summary(t.Context(), "1")
			require.NoError(t, err)
			require.Zero(t, strings.Trim(sums[0].Money[0].Net, "0."))
		})
	}
}

func TestBadAmounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for body, status := range map[string]int{
		`{}`:                          400, // nothing is made up
		`{"amount":null}`:             400,
		`{"amount":"abc"}`:            400,
		`{"amount":"007"}`:            400,
		`{"amount":"1/3"}`:            400,
		`{"amount":"0x10"}`:           400,
		`{"amount":1e999999999}`:      400,
		`{"amount":[1]}`:              400,
		`[1]`:                         400,
		`{"amount":`:                  400,
		`{"amount":0}`:                422,
		`{"amount":-5,"currency":""}`: 422,
	} {
		r := b.post(t, "/api/billing", "", "1", body)
		require.Equal(t, status, r.status, body)
	}
	require.Empty(t, b.effects(t))
	require.Equal(t, 400, b.post(t, "/api/inventory/reserve", "", "1", `{"items":3}`).status)
}

func TestUndoEndpoints(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		do, method, undo string
		idAt             []string
		kind             Kind
		foreign          string // an id of a sibling, unknown here
	}{
		{"/api/inventory/reserve", "DELETE", "/api/inventory/%/release", []string{"reservationId"}, StockRelease, "RES-7-99"},
		{"/api/domestic-shipping", "POST", "/api/domestic-shipping/%/cancel", []string{"shipmentId"}, ShipmentCancel, "SHIP-INTL-7-1"},
		{"/api/international-shipping", "POST", "/api/international-shipping/%/cancel", []string{"shipmentId"}, ShipmentCancel, "SHIP-DOM-7-1"},
		{"/api/billing", "POST", "/api/billing/%/refund", []string{"transaction", "id"}, Refund, "HV-7-1"},
		{"/api/high-value-processing", "POST", "/api/high-value-processing/%/cancel", []string{"processingId"}, HighValueCancel, "TXN-7-1"},
	} {
		t.Run(tt.undo, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			at := func(id string) string { return strings.Replace(tt.undo, "%", id, 1) }
			id := b.post(t, tt.do, "e:do", "7", billingBody).at(t, tt.idAt...)

			require.Equal(t, 404, b.call(t, tt.method, at(tt.foreign), "x", "7", "").status)
			first := b.call(t, tt.method, at(id), "e:undo", "7", "")
			require.Equal(t, 200, first.status, first.body)
			again := b.call(t, tt.method, at(id), "e:undo", "7", "")
			require.Equal(t, first.body, again.body)
			require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
			other := b.call(t, tt.method, at(id), "e:undo:2", "7", "")
			require.Equal(t, 409, other.status)
			require.Equal(t, "already_undone", other.at(t, "code"))

			require.Len(t, b.effects(t), 2)
			require.Equal(t, tt.kind, b.effects(t)[1].Kind)
			require.Empty(t, Check(b.effects(t)))
		})
	}
}

func TestShipmentIsCancelledWhereItWasMade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, "/api/domestic-shipping", "k", "1", "{}").at(t, "shipmentId")
	require.Equal(t, 404, b.post(t, "/api/international-shipping/"+id+"/cancel", "u", "1", "").status)
	require.Len(t, b.effects(t), 1)
}

func TestRefundRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	refund := func(id, key, body string) testReply {
		return b.post(t, "/api/billing/"+id+"/refund", key, "7", body)
	}
	id := b.charge(t, "k", "7")
	for key, body := range map[string]string{
		"larger":   `{"amount":12345678.91}`,
		"zero":     `{"amount":0}`,
		"currency": `{"amount":1,"currency":"EUR"}`,
	} {
		r := refund(id, key, body)
		require.Equal(t, 422, r.status, body)
		require.Equal(t, r.body, refund(id, key, body).body, "a definite refusal is remembered")
	}
	require.Equal(t, 400, refund(id, "bad", `{"amount":"x"}`).status)
	require.Len(t, b.effects(t), 1)
	require.Equal(t, 200, refund(id, "ok", `{"amount":"5.00","reason":"order_failed"}`).status)
	require.Equal(t, WrongAmount, Check(b.effects(t))[0].Rule, "the oracle sees a partial refund")
}

func TestUndoByAnotherOrderIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.charge(t, "k", "7")
	require.Equal(t, 200, b.post(t, "/api/billing/"+id+"/refund", "u", "8", "").status)
	e := b.effects(t)[1]
	require.Equal(t, "7", e.Aggregate)
	require.Equal(t, "8", e.Caller)
	require.Equal(t, WrongOrder, Check(b.effects(t))[0].Rule)
}

func TestFraudScore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for order, score := range map[string]string{"2": "25", "3": "75", "x2": "75", "90071992547409930": "25"} {
		r := b.post(t, "/api/fraud/check", "", order, "{}")
		require.Equal(t, score, r.at(t, "riskScore"), order)
		r.at(t, "checks", "addressVerification")
	}
	require.Equal(t, "25", b.post(t, "/api/fraud/check/succeed", "", "3", "{}").at(t, "riskScore"))
	require.Empty(t, b.effects(t))
}

func TestNotificationNeedsItsFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.post(t, "/api/notifications/status-update", "k", "1", `{"orderId":1,"newStatus":"X"}`)
	require.Equal(t, 500, r.status)
	r = b.post(t, "/api/notifications/status-update", "k", "1", `{"orderId":1,"newStatus":"X","oldStatus":"Y"}`)
	require.Equal(t, 200, r.status, "the failed call was not remembered")
}

func TestFixedVariants(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) {
		c.Settings = Settings{Rates: map[string]Rate{"*": 10000}, Refusals: map[string]Rate{"*": 10000}}
	})
	for path, failure := range map[string]int{
		"/api/inventory/reserve": 503, "/api/inventory/release": 503, "/api/billing": 503, "/api/billing/refund": 503,
		"/api/domestic-shipping": 503, "/api/domestic-shipping/cancel": 503,
		"/api/international-shipping": 503, "/api/international-shipping/cancel": 503,
		"/api/fraud/check": 429, "/api/high-value-processing": 503, "/api/high-value-processing/cancel": 503,
	} {
		r := b.post(t, path+"/succeed", "", path, billingBody)
		require.Equal(t, 200, r.status, path)
		if strings.HasSuffix(path, "cancel") || strings.HasSuffix(path, "refund") || strings.HasSuffix(path, "release") {
			require.Contains(t, r.body, `-TEST"`)
		}
		r = b.post(t, path+"/fail", "", path, billingBody)
		require.Equal(t, failure, r.status, path)
		require.NotEmpty(t, r.header.Get("Retry-After"))
	}
	require.Len(t, b.effects(t), 5)
}

func TestUnknownPathsAreRecordedAsTheyCame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for target, status := range map[string]int{
		"/api/inventory//release": 404, "/api/nothing": 404, "/api/inventory/a/../b/release": 404,
		"/api/billing/%2e%2e%2fadmin/refund": 405, "/api/billing": 405,
	} {
		require.Equal(t, status, b.call(t, http.MethodDelete, target, "", "", "").status, target)
	}
	require.Equal(t, 404, b.post(t, "/api/billing/a%2Fb%3Fx=1%23f/refund", "", "", "").status)
	calls := b.calls(t, Filter{})
	require.Len(t, calls, 6)
	require.Equal(t, "/api/billing/a%2Fb%3Fx=1%23f/refund", calls[5].Target)
	require.Equal(t, Billing, calls[5].Destination)
	require.Equal(t, 404, calls[5].Reply.Status)
}

func TestTooLongBody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, 413, b.post(t, "/api/billing", "", "1", strings.Repeat(" ", maxBody+1)).status)
	require.Empty(t, b.effects(t))
}
