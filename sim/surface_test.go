package sim

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryEndpointHasItsRateItsFailureAndItsVariants goes through the whole surface: what each endpoint is called, how often it fails
// as shipped, how that looks, and the variants with a fixed outcome.
func TestEveryEndpointHasItsRateItsFailureAndItsVariants(t *testing.T) {
	t.Parallel()
	const body = `{"orderId":8,"amount":5,"oldStatus":"A","newStatus":"B"}`
	for _, tt := range []struct {
		method, path, rate, shipped string
		status, retryAfter          int
		code                        string
		variant                     string // path without /succeed and /fail; empty for none
	}{
		{"POST", "/api/inventory/reserve", "inventory.reserve", "0.05", 503, 4, "inventory_system_unavailable", "/api/inventory/reserve"},
		{"DELETE", "/api/inventory/X/release", "inventory.release", "0.1", 503, 4, "inventory_release_unavailable", "/api/inventory/release"},
		{"POST", "/api/fraud/check", "fraudCheck.check", "0.05", 429, 10, "rate_limit_exceeded", "/api/fraud/check"},
		{"POST", "/api/domestic-shipping", "shipping.domestic.create", "0.05", 503, 3, "shipping_service_unavailable", "/api/domestic-shipping"},
		{"POST", "/api/domestic-shipping/X/cancel", "shipping.domestic.cancel", "0.1", 503, 2, "shipping_service_unavailable", "/api/domestic-shipping/cancel"},
		{"POST", "/api/international-shipping", "shipping.international.create", "0.1", 503, 3, "shipping_service_unavailable", "/api/international-shipping"},
		{"POST", "/api/international-shipping/X/cancel", "shipping.international.cancel", "0.1", 503, 3, "shipping_service_unavailable", "/api/international-shipping/cancel"},
		{"POST", "/api/billing", "billing.charge", "0.3", 503, 5, "payment_gateway_unavailable", "/api/billing"},
		{"POST", "/api/billing/X/refund", "billing.refund", "0.1", 503, 5, "refund_service_unavailable", "/api/billing/refund"},
		{"POST", "/api/high-value-processing", "highValue.process", "0.2", 503, 5, "high_value_processing_unavailable", "/api/high-value-processing"},
		{"POST", "/api/high-value-processing/X/cancel", "highValue.cancel", "0.1", 503, 5, "high_value_processing_unavailable", "/api/high-value-processing/cancel"},
		{"POST", "/api/notifications/shipping-confirmation", "notifications.send", "0", 503, 5, "notification_service_unavailable", ""},
		{"POST", "/api/notifications/review-request", "notifications.send", "0", 503, 5, "notification_service_unavailable", ""},
		{"POST", "/api/notifications/status-update", "notifications.send", "0", 503, 5, "notification_service_unavailable", ""},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.shipped, DefaultSettings().Rates[tt.rate].String())
			b := setup(t)
			_, err := b.client.ChangeSettings(t.Context(), Settings{Rates: map[string]Rate{tt.rate: rateOne}})
			require.NoError(t, err)
			failed := func(r testReply) {
				require.Equal(t, tt.status, r.status, r.body)
				require.Equal(t, strconv.Itoa(tt.retryAfter), r.header.Get("Retry-After"))
				require.Equal(t, tt.code, r.at(t, "error"))
				for _, field := range []string{"message", "aggregateId", "timestamp"} {
					r.at(t, field)
				}
			}
			failed(b.call(t, tt.method, tt.path, "k", "8", body))
			if tt.variant == "" {
				return
			}
			failed(b.post(t, tt.variant+"/fail", "", "8", body))
			r := b.post(t, tt.variant+"/succeed", "", "8", body)
			require.Equal(t, http.StatusOK, r.status, "chance does not touch a fixed outcome: %s", r.body)
			if strings.Contains(tt.path, "/X/") {
				require.Contains(t, r.body, `-TEST"`, "an undo that names nothing has an id that cannot be real")
			}
		})
	}
}
