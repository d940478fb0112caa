// Package ledger is a destination in Go: it books every invoice in an accounting system over HTTP, and reverses the booking when the
// invoice's saga is unwound.
package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/ebbline/ebb/consumers/handler"

	"example.com/invoicing/invoices"
)

// Ledger is the handler. URL and Client are required; credentials would be here as well, and never in a Request: those are stored.
type Ledger struct {
	URL    string
	Client *http.Client
}

// Destination is how it is run.
func Destination(l Ledger) handler.Destination {
	return handler.Destination{
		Name: "ledger", Handler: l, Version: "1",
		On: []string{invoices.EventIssued}, Aggregate: invoices.AggregateType,
		Roles:       map[string]handler.Role{invoices.EventIssued: handler.Create},
		Idempotency: handler.Idempotent, // the accounting system remembers keys
		Timeout:     5 * time.Second, Concurrency: 8,
	}
}

// booking is what the accounting system is sent.
type booking struct {
	Invoice  string      `json:"invoice"`
	Amount   json.Number `json:"amount"`
	Currency string      `json:"currency"`
}

// reversal is what undoing takes: it is stored when the booking succeeds.
type reversal struct {
	Booking string `json:"booking"`
}

// Prepare makes the bytes of the booking; it asks nobody.
func (l Ledger) Prepare(_ context.Context, s handler.Step) (handler.Request, error) {
	var in invoices.Issued
	if err := json.Unmarshal(s.Event, &in); err != nil {
		return handler.Request{}, handler.Park("the event is not an issued invoice: " + err.Error())
	}
	if in.Total == "0" {
		return handler.Request{}, handler.Skip("nothing to book")
	}
	body, err := json.Marshal(booking{Invoice: in.InvoiceID, Amount: in.Total, Currency: in.Currency})
	return handler.Request{Body: body}, err
}

// Send books.
func (l Ledger) Send(ctx context.Context, r handler.Request) (handler.Result, error) {
	req, err := l.request(ctx, http.MethodPost, "/bookings", r.Body)
	if err != nil {
		return handler.Result{}, err
	}
	return booked(handler.Call(l.Client, r, req))
}

// Undo reverses the booking.
func (l Ledger) Undo(ctx context.Context, r handler.Request) (handler.Result, error) {
	var undo reversal
	if err := json.Unmarshal(r.Body, &undo); err != nil || undo.Booking == "" {
		return handler.Result{}, handler.Park("the stored reversal cannot be read")
	}
	req, err := l.request(ctx, http.MethodPost, "/bookings/"+url.PathEscape(undo.Booking)+"/reversal", nil)
	if err != nil {
		return handler.Result{}, err
	}
	return handler.Call(l.Client, r, req)
}

// Lookup asks what became of a booking whose reply was lost.
func (l Ledger) Lookup(ctx context.Context, r handler.Request) (handler.Result, error) {
	req, err := l.request(ctx, http.MethodGet, "/bookings/by-key/"+url.PathEscape(r.Key), nil)
	if err != nil {
		return handler.Result{}, err
	}
	return booked(handler.Ask(l.Client, r, req))
}

// booked reads the reply of a booking: what undoing takes has to be in the result.
func booked(out handler.Result, err error) (handler.Result, error) {
	if err != nil {
		return out, err
	}
	var reply struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(out.Reply, &reply); err != nil || reply.ID == "" {
		return handler.Result{}, handler.Unknown(errors.New("the reply has no booking id"))
	}
	out.Undo, err = json.Marshal(reversal{Booking: reply.ID})
	return out, err
}

// request makes one; what cannot be made is our set-up.
func (l Ledger) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, handler.Misconfigured(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}
