package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

type location struct {
	City    string `json:"city"`
	State   string `json:"state"`
	Country string `json:"country"`
}

type warehouse struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Location location `json:"location"`
}

type reservedItem struct {
	SKU         json.RawMessage `json:"sku"`
	Quantity    json.RawMessage `json:"quantity"`
	Reserved    bool            `json:"reserved"`
	BinLocation string          `json:"binLocation"`
}

type reservation struct {
	ReservationID string          `json:"reservationId"`
	OrderID       json.RawMessage `json:"orderId"`
	WarehouseID   string          `json:"warehouseId"`
	Warehouse     warehouse       `json:"warehouse"`
	Items         []reservedItem  `json:"items"`
	ShippingType  json.RawMessage `json:"shippingType"`
	Status        string          `json:"status"`
	ExpiresAt     time.Time       `json:"expiresAt"`
	ReservedAt    time.Time       `json:"reservedAt"`
}

var mainWarehouse = warehouse{
	ID: "WH-01", Name: "Main warehouse",
	Location: location{City: "Reno", State: "NV", Country: "US"},
}

func reserve(o *operation) outcome {
	items, err := reserveItems(o.fields)
	if err != nil {
		return o.malformed(err.Error())
	}
	id := fmt.Sprintf("RES-%s-%d", o.call.Aggregate, o.book.nextEffect())
	return outcome{
		status: http.StatusOK,
		effect: o.effect(StockHold, id),
		body: reservation{
			ReservationID: id, OrderID: o.orderID(),
			WarehouseID: mainWarehouse.ID, Warehouse: mainWarehouse, Items: items,
			ShippingType: o.fields.raw("shippingType", `"domestic"`), Status: "reserved",
			ExpiresAt: o.now.Add(15 * time.Minute), ReservedAt: o.now,
		},
	}
}

func reserveItems(f fields) ([]reservedItem, error) {
	var wanted []fields
	if f.has("items") {
		if err := json.Unmarshal(f["items"], &wanted); err != nil {
			return nil, fmt.Errorf("items: want an array of objects with sku and quantity")
		}
	}
	items := make([]reservedItem, len(wanted))
	for i, w := range wanted {
		items[i] = reservedItem{
			SKU: w.raw("sku", `""`), Quantity: w.raw("quantity", "1"), Reserved: true,
			BinLocation: fmt.Sprintf("A-%02d", i+1),
		}
	}
	return items, nil
}

// orderID is the body's, as written; 0 when the body has none.
func (o *operation) orderID() json.RawMessage { return o.fields.raw("orderId", "0") }

type releaseReply struct {
	Status        string    `json:"status"`
	Message       string    `json:"message"`
	ReservationID string    `json:"reservationId"`
	AggregateID   string    `json:"aggregateId"`
	Timestamp     time.Time `json:"timestamp"`
}

func releaseStock(o *operation) outcome {
	e, _, refused := o.undo(StockRelease, StockHold, "reservation")
	if refused != nil {
		return *refused
	}
	return outcome{status: http.StatusOK, effect: e, body: releaseReply{
		Status: "released", Message: "stock released", ReservationID: o.id,
		AggregateID: e.Aggregate, Timestamp: o.now,
	}}
}
