package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/ebbline/ebb/producer/order"
)

// orderView is an order as JSON.
type orderView struct {
	ID               int64              `json:"id"`
	CustomerID       string             `json:"customerId"`
	TotalAmount      order.Amount       `json:"totalAmount"`
	Currency         string             `json:"currency"`
	ShippingType     order.ShippingType `json:"shippingType"`
	Status           order.Status       `json:"status"`
	Attention        *string            `json:"attention"`
	Version          int64              `json:"version"`
	CreatedEvent     string             `json:"createdEvent"`
	CreatedAt        time.Time          `json:"createdAt"`
	UpdatedAt        time.Time          `json:"updatedAt"`
	Sagas            json.RawMessage    `json:"sagas,omitempty"`
	SagasUnavailable bool               `json:"sagasUnavailable,omitempty"`

	Number string `json:"-"`
}

type pageView struct {
	Orders     []orderView `json:"orders"`
	NextBefore *int64      `json:"nextBefore"` // null on the last page
	Next       *string     `json:"next"`       // the same as a path with the query; null on the last page
}

func viewOf(o order.Order) orderView {
	v := orderView{
		ID: o.ID, CustomerID: o.CustomerID, TotalAmount: o.Amount, Currency: o.Currency,
		ShippingType: o.ShippingType, Status: o.Status, Version: o.Version, CreatedEvent: o.CreatedEvent,
		CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt, Number: o.Number(),
	}
	if o.Attention != "" {
		v.Attention = &o.Attention
	}
	return v
}

// responseOf makes the answer that is stored with the key: it depends on the
// order alone.
func responseOf(o order.Order, status int) order.Response {
	text, err := marshal(viewOf(o))
	if err != nil {
		// No field of an order can fail to encode; a test goes through all.
		panic("order API: " + err.Error())
	}
	return order.Response{Status: status, Body: append(text, '\n')}
}

// marshal is json.Marshal without the escapes meant for HTML.
func marshal(v any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	text, err := marshal(v)
	if err != nil {
		return err
	}
	write(w, status, "application/json", append(text, '\n'))
	return nil
}

func writeResult(w http.ResponseWriter, result order.Result) error {
	if result.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	write(w, result.Response.Status, "application/json", result.Response.Body)
	return nil
}

func write(w http.ResponseWriter, status int, contentType string, text []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone is nobody's fault
}
