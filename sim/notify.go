package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

var notificationDown = failure{503, "notification_service_unavailable", "the mail service does not answer", 5}

type notificationReply struct {
	Status           string          `json:"status"`
	NotificationType string          `json:"notificationType"`
	OrderID          json.RawMessage `json:"orderId"`
	Message          string          `json:"message"`
	Timestamp        time.Time       `json:"timestamp"`
}

// notify returns the operation of one kind of message. A message cannot be
// taken back, so there is no undo.
func notify(kind, status string) func(*operation) outcome {
	return func(o *operation) outcome {
		for _, name := range []string{"orderId", "newStatus", "oldStatus"} {
			if !o.fields.has(name) {
				out := o.refuse(http.StatusInternalServerError, "internal_error", "field "+name+" is missing")
				out.forget = true
				return out
			}
		}
		id := fmt.Sprintf("NTF-%s-%d", o.call.Aggregate, o.book.nextEffect())
		return outcome{status: http.StatusOK, effect: o.effect(Notification, id), body: notificationReply{
			Status: status, NotificationType: kind, OrderID: o.fields["orderId"],
			Message:   fmt.Sprintf("order went from %s to %s", o.fields.text("oldStatus"), o.fields.text("newStatus")),
			Timestamp: o.now,
		}}
	}
}

// madeUpUndo is the undo variant that always succeeds: it names nothing that
// exists, so it has no effect and answers with an id that cannot be real.
func madeUpUndo(name string) func(*operation) outcome {
	return func(o *operation) outcome {
		info := refundInfo{
			RefundID: "REF-TEST", Amount: o.fields.raw("amount", "0"), Currency: o.fields.raw("currency", `"USD"`),
			Reason: o.fields.raw("reason", `""`), ProcessedAt: o.now,
		}
		var body any
		switch name {
		case RateRelease:
			body = releaseReply{"released", "stock released", "RES-TEST", o.call.Aggregate, o.now}
		case RateDomesticCancel:
			body = cancelShipmentReply{"cancelled", domestic.cancelled, "SHIP-DOM-TEST", o.now}
		case RateInternationalCancel:
			body = cancelShipmentReply{"cancelled", international.cancelled, "SHIP-INTL-TEST", o.now}
		case RateRefund:
			body = refundReply{"refunded", "payment refunded", "TXN-TEST", "", info, o.call.Aggregate, o.now}
		default:
			body = refundReply{"cancelled", "payment cancelled and refunded", "", "HV-TEST", info, o.call.Aggregate, o.now}
		}
		return outcome{status: http.StatusOK, body: body}
	}
}
