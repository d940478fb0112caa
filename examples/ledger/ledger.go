// Package ledger is a destination in Go: it books every invoice in an accounting system over HTTP, and reverses the booking when the
// invoice's saga is unwound.
package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
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
	out, err := l.call(ctx, http.MethodPost, "/bookings", r.Key, r.Body)
	if err != nil {
		return handler.Result{}, err
	}
	return booked(out)
}

// Undo reverses the booking.
func (l Ledger) Undo(ctx context.Context, r handler.Request) (handler.Result, error) {
	var undo reversal
	if err := json.Unmarshal(r.Body, &undo); err != nil || undo.Booking == "" {
		return handler.Result{}, handler.Park("the stored reversal cannot be read")
	}
	return l.call(ctx, http.MethodPost, "/bookings/"+url.PathEscape(undo.Booking)+"/reversal", r.Key, nil)
}

// Lookup asks what became of a booking whose reply was lost.
func (l Ledger) Lookup(ctx context.Context, r handler.Request) (handler.Result, error) {
	out, err := l.call(ctx, http.MethodGet, "/bookings/by-key/"+url.PathEscape(r.Key), "", nil)
	if err == nil {
		return booked(out)
	}
	if errors.Is(err, errGone) {
		return handler.Result{}, handler.NotFound("the accounting system does not know the key")
	}
	return handler.Result{}, err
}

// booked reads the reply of a booking: what undoing takes has to be in the result.
func booked(out handler.Result) (handler.Result, error) {
	var reply struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(out.Reply, &reply); err != nil || reply.ID == "" {
		return handler.Result{}, handler.Unknown(errors.New("the reply has no booking id"))
	}
	undo, err := json.Marshal(reversal{Booking: reply.ID})
	out.Undo = undo
	return out, err
}

var errGone = errors.New("status 404")

// call makes one exchange, and says by its error what its end means.
func (l Ledger) call(ctx context.Context, method, path, key string, body []byte) (handler.Result, error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.URL+path, in)
	if err != nil {
		return handler.Result{}, handler.Misconfigured(err)
	}
	// net/http repeats requests by itself when it thinks that they are safe. One attempt is one request: no second body, and the key
	// in a form that it does not know.
	req.GetBody = nil
	if key != "" {
		req.Header["idempotency-key"] = []string{key}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.Client.Do(req)
	if err != nil {
		if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" {
			return handler.Result{}, handler.NotSent(err)
		}
		return handler.Result{}, handler.Unknown(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, handler.MaxReply))
	if err != nil {
		return handler.Result{}, handler.Unknown(err)
	}
	return handler.Result{Status: resp.StatusCode, Reply: reply}, meaning(resp)
}

// meaning is what a status says; nil is a success.
func meaning(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusNotFound:
		return errGone // of Send and Undo: not known
	case code == http.StatusBadRequest, code == http.StatusConflict, code == http.StatusUnprocessableEntity:
		return handler.Refuse(fmt.Sprintf("status %d", code))
	case code == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return handler.RetryAfter(time.Duration(seconds) * time.Second)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return handler.Misconfigured(fmt.Errorf("status %d", code))
	default:
		return handler.Unknown(fmt.Errorf("status %d", code))
	}
}
