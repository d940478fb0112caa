package sim

import (
	"net/http"
	"strings"
)

// operations lists what the destinations can do, without the fixed variants
// and the lookups, which follow from it.
func operations() []endpoint {
	stock := failure{503, "inventory_system_unavailable", "the inventory system does not answer", 4}
	release := failure{503, "inventory_release_unavailable", "the inventory system cannot release stock now", 4}
	fraud := failure{429, "rate_limit_exceeded", "too many fraud checks", 10}
	carrier := failure{503, "shipping_service_unavailable", "the carrier does not answer", 3}
	gateway := failure{503, "payment_gateway_unavailable", "the payment gateway does not answer", 5}
	refunds := failure{503, "refund_service_unavailable", "the payment gateway cannot refund now", 5}
	review := failure{503, "high_value_processing_unavailable", "the review desk does not answer", 5}

	do, undo := []string{http.MethodPost}, []string{http.MethodPost}
	domesticCancel, internationalCancel := carrier, carrier
	domesticCancel.retryAfter = 2
	return []endpoint{
		{name: RateReserve, methods: do, path: "/api/inventory/reserve", destination: Inventory, direction: Do, failure: stock, run: reserve},
		{name: RateRelease, methods: []string{http.MethodDelete}, path: "/api/inventory/{id}/release", destination: Inventory, direction: Undo, failure: release, run: releaseStock},
		{name: RateFraudCheck, methods: do, path: "/api/fraud/check", destination: FraudCheck, direction: Do, failure: fraud, run: checkFraud},
		{name: RateDomesticCreate, methods: do, path: "/api/domestic-shipping", destination: Shipping, direction: Do, failure: carrier, run: domestic.ship},
		{name: RateDomesticCancel, methods: undo, path: "/api/domestic-shipping/{id}/cancel", destination: Shipping, direction: Undo, failure: domesticCancel, run: domestic.cancel},
		{name: RateInternationalCreate, methods: do, path: "/api/international-shipping", destination: Shipping, direction: Do, failure: carrier, run: international.ship},
		{name: RateInternationalCancel, methods: undo, path: "/api/international-shipping/{id}/cancel", destination: Shipping, direction: Undo, failure: internationalCancel, run: international.cancel},
		{name: RateCharge, methods: do, path: "/api/billing", destination: Billing, direction: Do, failure: gateway, run: charge},
		{name: RateRefund, methods: undo, path: "/api/billing/{id}/refund", destination: Billing, direction: Undo, failure: refunds, run: refund},
		{name: RateHighValue, methods: do, path: "/api/high-value-processing", destination: Billing, direction: Do, failure: review, run: processHighValue},
		{name: RateHighValueCancel, methods: undo, path: "/api/high-value-processing/{id}/cancel", destination: Billing, direction: Undo, failure: review, run: cancelHighValue},
		{name: RateNotification, methods: do, path: "/api/notifications/shipping-confirmation", destination: Notifications, direction: Do, failure: notificationDown, run: notify("shipping-confirmation", "sent")},
		{name: RateNotification, methods: do, path: "/api/notifications/review-request", destination: Notifications, direction: Do, failure: notificationDown, run: notify("review-request", "sent")},
		{name: RateNotification, methods: do, path: "/api/notifications/status-update", destination: Notifications, direction: Do, failure: notificationDown, run: notify("status-update", "recorded")},
	}
}

// lookupAreas are the paths under which each destination answers lookups.
var lookupAreas = map[string][]string{
	Inventory:     {"inventory"},
	FraudCheck:    {"fraud"},
	Shipping:      {"shipping", "domestic-shipping", "international-shipping"},
	Billing:       {"billing", "high-value-processing"},
	Notifications: {"notifications"},
}

// catalog returns every endpoint: the operations, their variants with a fixed
// outcome, and the lookups.
func catalog() []endpoint {
	var all []endpoint
	for _, op := range operations() {
		all = append(all, op)
		if op.destination != Notifications {
			all = append(all, variant(op, "succeed", alwaysSucceeds), variant(op, "fail", alwaysFails))
		}
	}
	for _, d := range Destinations() {
		for _, area := range lookupAreas[d] {
			all = append(all, endpoint{
				name: d + ".lookup", methods: []string{http.MethodGet}, path: "/api/" + area + "/by-key/{id}",
				destination: d, direction: Lookup,
			})
		}
	}
	for i := range all {
		all[i].segments = strings.Split(strings.TrimPrefix(all[i].path, "/"), "/")
	}
	return all
}

// variant derives the endpoint that always succeeds or always fails. The path
// of an undo variant names no thing, so it succeeds without an effect.
func variant(op endpoint, suffix string, how fixed) endpoint {
	op.path = strings.Replace(op.path, "/{id}", "", 1) + "/" + suffix
	op.outcome = how
	if op.direction == Undo {
		op.methods = []string{http.MethodPost, http.MethodDelete}
		op.run = madeUpUndo(op.name)
	}
	return op
}
