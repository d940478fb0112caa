package sim

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"time"
)

type transaction struct {
	ID          string          `json:"id"`
	Amount      json.RawMessage `json:"amount"`
	Currency    json.RawMessage `json:"currency"`
	Status      string          `json:"status"`
	ProcessedAt time.Time       `json:"processedAt"`
}

type chargeReply struct {
	Status      string      `json:"status"`
	Message     string      `json:"message"`
	Transaction transaction `json:"transaction"`
	AggregateID string      `json:"aggregateId"`
	Timestamp   time.Time   `json:"timestamp"`
}

type refundInfo struct {
	RefundID    string          `json:"refundId"`
	Amount      json.RawMessage `json:"amount"`
	Currency    json.RawMessage `json:"currency"`
	Reason      json.RawMessage `json:"reason"`
	ProcessedAt time.Time       `json:"processedAt"`
}

type refundReply struct {
	Status        string     `json:"status"`
	Message       string     `json:"message"`
	TransactionID string     `json:"transactionId,omitempty"`
	ProcessingID  string     `json:"processingId,omitempty"`
	Refund        refundInfo `json:"refund"`
	AggregateID   string     `json:"aggregateId"`
	Timestamp     time.Time  `json:"timestamp"`
}

type highValueReply struct {
	Status                 string          `json:"status"`
	Message                string          `json:"message"`
	ProcessingID           string          `json:"processingId"`
	Amount                 json.RawMessage `json:"amount"`
	Currency               json.RawMessage `json:"currency"`
	AdditionalVerification bool            `json:"additionalVerification"`
	InsuranceAdded         bool            `json:"insuranceAdded"`
	SignatureRequired      bool            `json:"signatureRequired"`
	AggregateID            string          `json:"aggregateId"`
	Timestamp              time.Time       `json:"timestamp"`
}

const defaultCurrency = "USD"

// money takes a charge of the amount in the body and makes its effect.
func (o *operation) money(kind Kind, prefix string) (*Effect, outcome) {
	if !o.fields.has("amount") {
		// A made-up amount would hide a caller that forgot to send one.
		return nil, o.malformed("amount is missing")
	}
	text := o.fields.text("amount")
	amount, err := parseDecimal(text)
	if err != nil {
		return nil, o.malformed("amount: " + err.Error())
	}
	if amount.Sign() <= 0 {
		return nil, o.refuse(http.StatusUnprocessableEntity, "invalid_amount", "the amount must be above zero")
	}
	e := o.effect(kind, fmt.Sprintf("%s-%s-%d", prefix, o.call.Aggregate, o.book.nextEffect()))
	e.Amount, e.Currency = text, o.currency(defaultCurrency)
	return e, outcome{}
}

func (o *operation) currency(fallback string) string {
	if text := o.fields.text("currency"); text != "" {
		return text
	}
	return fallback
}

func charge(o *operation) outcome {
	e, bad := o.money(Charge, "TXN")
	if e == nil {
		return bad
	}
	return outcome{status: http.StatusOK, effect: e, body: chargeReply{
		Status: "success", Message: "payment processed",
		Transaction: transaction{
			ID: e.Thing, Amount: o.fields["amount"], Currency: o.fields.raw("currency", `"USD"`),
			Status: "completed", ProcessedAt: o.now,
		},
		AggregateID: o.call.Aggregate, Timestamp: o.now,
	}}
}

func processHighValue(o *operation) outcome {
	e, bad := o.money(HighValue, "HV")
	if e == nil {
		return bad
	}
	return outcome{status: http.StatusOK, effect: e, body: highValueReply{
		Status: "success", Message: "payment processed after review", ProcessingID: e.Thing,
		Amount: o.fields["amount"], Currency: o.fields.raw("currency", `"USD"`),
		AdditionalVerification: true, InsuranceAdded: true, SignatureRequired: true,
		AggregateID: o.call.Aggregate, Timestamp: o.now,
	}}
}

func refund(o *operation) outcome {
	e, info, refused := o.giveBack(Refund, Charge, "transaction")
	if refused != nil {
		return *refused
	}
	return outcome{status: http.StatusOK, effect: e, body: refundReply{
		Status: "refunded", Message: "payment refunded", TransactionID: o.id, Refund: info,
		AggregateID: e.Aggregate, Timestamp: o.now,
	}}
}

func cancelHighValue(o *operation) outcome {
	e, info, refused := o.giveBack(HighValueCancel, HighValue, "processing")
	if refused != nil {
		return *refused
	}
	return outcome{status: http.StatusOK, effect: e, body: refundReply{
		Status: "cancelled", Message: "payment cancelled and refunded", ProcessingID: o.id, Refund: info,
		AggregateID: e.Aggregate, Timestamp: o.now,
	}}
}

// giveBack ends a charge once. Without an amount in the body all of it is
// given back; with one, that much, which may be less but never more.
func (o *operation) giveBack(kind, made Kind, noun string) (*Effect, refundInfo, *outcome) {
	e, t, refused := o.undo(kind, made, noun)
	if refused != nil {
		return nil, refundInfo{}, refused
	}
	e.Amount, e.Currency = t.amount, o.currency(t.currency)
	info := refundInfo{
		RefundID: fmt.Sprintf("REF-%s-%d", t.aggregate, e.Seq), Amount: json.RawMessage(t.amount),
		Currency: encode(e.Currency), Reason: o.fields.raw("reason", `""`), ProcessedAt: o.now,
	}
	if o.fields.has("amount") {
		e.Amount, info.Amount = o.fields.text("amount"), o.fields["amount"]
	}
	if bad := o.checkRefund(e, t); bad != nil {
		return nil, refundInfo{}, bad
	}
	return e, info, nil
}

func (o *operation) checkRefund(e *Effect, t *thing) *outcome {
	var out outcome
	amount, err := parseDecimal(e.Amount)
	charged, _ := parseDecimal(t.amount)
	switch {
	case err != nil:
		out = o.malformed("amount: " + err.Error())
	case amount.Cmp(new(big.Rat)) <= 0:
		out = o.refuse(http.StatusUnprocessableEntity, "invalid_amount", "the amount must be above zero")
	case amount.Cmp(charged) > 0:
		out = o.refuse(http.StatusUnprocessableEntity, "refund_exceeds_charge", "the refund is larger than the charge")
	case e.Currency != t.currency:
		out = o.refuse(http.StatusUnprocessableEntity, "currency_mismatch", "the charge was in another currency")
	default:
		return nil
	}
	return &out
}
