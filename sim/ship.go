package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

type carrierInfo struct {
	Code    string `json:"code"`
	Name    string `json:"name"`
	Service string `json:"service"`
}

type cost struct {
	Amount   json.Number `json:"amount"`
	Currency string      `json:"currency"`
}

type customs struct {
	Declaration string `json:"declaration"`
	Reference   string `json:"reference"`
	Incoterms   string `json:"incoterms"`
}

type insurance struct {
	Required bool            `json:"required"`
	Value    json.RawMessage `json:"value"`
	Currency json.RawMessage `json:"currency"`
}

type shipmentReply struct {
	ShipmentID        string          `json:"shipmentId"`
	OrderID           json.RawMessage `json:"orderId"`
	CustomerID        json.RawMessage `json:"customerId"`
	Carrier           carrierInfo     `json:"carrier"`
	TrackingNumber    string          `json:"trackingNumber"`
	ShippingAddress   json.RawMessage `json:"shippingAddress"`
	Cost              cost            `json:"cost"`
	Customs           *customs        `json:"customs,omitempty"`
	Insurance         *insurance      `json:"insurance,omitempty"`
	Status            string          `json:"status"`
	EstimatedDelivery time.Time       `json:"estimatedDelivery"`
	CreatedAt         time.Time       `json:"createdAt"`
}

type cancelShipmentReply struct {
	Status     string    `json:"status"`
	Message    string    `json:"message"`
	ShipmentID string    `json:"shipmentId"`
	Timestamp  time.Time `json:"timestamp"`
}

// line is one of the carrier's two services.
type line struct {
	prefix    string
	carrier   carrierInfo
	cost      json.Number
	days      int
	abroad    bool
	cancelled string
}

var (
	domestic = line{
		prefix: "SHIP-DOM", carrier: carrierInfo{"DOM", "Domestic Parcel", "ground"},
		cost: "12.50", days: 2, cancelled: "domestic shipment cancelled",
	}
	international = line{
		prefix: "SHIP-INTL", carrier: carrierInfo{"INTL", "International Freight", "air"},
		cost: "45.00", days: 7, abroad: true, cancelled: "international shipment recalled from customs",
	}
)

const noAddress = `{"line1":"1 Harbour Street","city":"Portland","country":"US"}`

func (l line) ship(o *operation) outcome {
	n := o.book.nextEffect()
	id := fmt.Sprintf("%s-%s-%d", l.prefix, o.call.Aggregate, n)
	reply := shipmentReply{
		ShipmentID: id, OrderID: o.orderID(), CustomerID: o.fields.raw("customerId", `""`),
		Carrier: l.carrier, TrackingNumber: fmt.Sprintf("%s%010d", l.carrier.Code, n),
		ShippingAddress: o.fields.raw("shippingAddress", noAddress),
		Cost:            cost{l.cost, "USD"}, Status: "confirmed",
		EstimatedDelivery: o.now.AddDate(0, 0, l.days), CreatedAt: o.now,
	}
	if l.abroad {
		reply.Customs = &customs{Declaration: fmt.Sprintf("CD-%d", n), Reference: id, Incoterms: "DAP"}
		reply.Insurance = &insurance{true, o.fields.raw("totalAmount", "0"), o.fields.raw("currency", `"USD"`)}
	}
	return outcome{status: http.StatusOK, effect: o.effect(Shipment, id), body: reply}
}

func (l line) cancel(o *operation) outcome {
	// A shipment can only be cancelled at the service that took it.
	if len(o.id) <= len(l.prefix) || o.id[:len(l.prefix)+1] != l.prefix+"-" {
		return o.refuse(http.StatusNotFound, "shipment_not_found", "no such shipment")
	}
	e, _, refused := o.undo(ShipmentCancel, Shipment, "shipment")
	if refused != nil {
		return *refused
	}
	return outcome{status: http.StatusOK, effect: e, body: cancelShipmentReply{
		Status: "cancelled", Message: l.cancelled, ShipmentID: o.id, Timestamp: o.now,
	}}
}
