package orderapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxReply is the most that is read of an answer: an order with a long history of sagas.
const maxReply = 64 << 20

// Money is an amount digit for digit. Its JSON is a string; a number is read as its digits.
type Money string

// UnmarshalJSON reads a number or a string.
func (m *Money) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(m))
	}
	*m = Money(text)
	return nil
}

// Order is an order as the API shows it.
type Order struct {
	ID           int64     `json:"id"`
	CustomerID   string    `json:"customerId"`
	TotalAmount  Money     `json:"totalAmount"`
	Currency     string    `json:"currency"`
	ShippingType string    `json:"shippingType"`
	Status       string    `json:"status"`
	Attention    *string   `json:"attention"` // why an operator has to look, nil: nobody has to
	Version      int64     `json:"version"`
	CreatedEvent string    `json:"createdEvent"` // also the id of the saga
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`
	// Sagas are as the API gives them; only a single order has them.
	Sagas            json.RawMessage `json:"sagas,omitempty"`
	SagasUnavailable bool            `json:"sagasUnavailable,omitempty"`
}

// Settled tells whether nothing moves the order but a client or an operator.
func (o Order) Settled() bool {
	return o.Attention != nil || o.Status != "PENDING" && o.Status != "CANCELLING"
}

// New is an order to be created.
type New struct {
	CustomerID   string `json:"customerId"`
	TotalAmount  Money  `json:"totalAmount"`
	Currency     string `json:"currency"`
	ShippingType string `json:"shippingType"`
}

// Filter selects orders; the zero value selects the newest.
type Filter struct {
	Status     string
	CustomerID string
	Attention  bool
	Before     int64 // only ids below; 0: from the newest
	Limit      int   // 0: what the API takes
}

// Page is a part of a list, newest first.
type Page struct {
	Orders     []Order `json:"orders"`
	NextBefore *int64  `json:"nextBefore"` // nil on the last page
}

// Field is one thing that is wrong in a request.
type Field struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Error is an answer that is not a success (RFC 9457).
type Error struct {
	Status int     `json:"status"`
	Title  string  `json:"title"`
	Detail string  `json:"detail"`
	Fields []Field `json:"errors"`
}

func (e *Error) Error() string {
	text := fmt.Sprintf("the order API answered %d: %s", e.Status, cmp.Or(e.Detail, e.Title, http.StatusText(e.Status)))
	for _, f := range e.Fields {
		text += fmt.Sprintf("\n  %s: %s", f.Field, f.Detail)
	}
	return text
}

// UnreachableError says that there was no answer.
type UnreachableError struct {
	URL string
	// Maybe says that the call may have been stored all the same.
	Maybe bool
	Err   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the order API at %s does not answer: %v", e.URL, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Client calls the API. Make it with New; it is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// NewClient makes a client of the API at base, such as http://127.0.0.1:8080.
func NewClient(base string, client *http.Client) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("the address of the order API is not a URL such as http://127.0.0.1:8080")
	}
	return &Client{strings.TrimRight(base, "/"), client}, nil
}

// Create creates an order, once per key.
func (c *Client) Create(ctx context.Context, key string, n New) (Order, error) {
	var o Order
	return o, c.do(ctx, http.MethodPost, "/api/orders", key, n, &o)
}

// Get gives an order with its sagas.
func (c *Client) Get(ctx context.Context, id int64) (Order, error) {
	var o Order
	return o, c.do(ctx, http.MethodGet, path(id), "", nil, &o)
}

// List gives a page of orders, newest first.
func (c *Client) List(ctx context.Context, f Filter) (Page, error) {
	q := url.Values{}
	if f.Status != "" {
		q.Set("status", f.Status)
	}
	if f.CustomerID != "" {
		q.Set("customerId", f.CustomerID)
	}
	if f.Attention {
		q.Set("attention", "true")
	}
	if f.Before > 0 {
		q.Set("before", strconv.FormatInt(f.Before, 10))
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	var p Page
	return p, c.do(ctx, http.MethodGet, "/api/orders?"+q.Encode(), "", nil, &p)
}

// SetStatus moves an order to SHIPPED or DELIVERED.
func (c *Client) SetStatus(ctx context.Context, key string, id int64, status string) (Order, error) {
	var o Order
	return o, c.do(ctx, http.MethodPut, path(id)+"/status", key, map[string]string{"status": status}, &o)
}

// Cancel cancels an order; without a reason the API has one.
func (c *Client) Cancel(ctx context.Context, key string, id int64, reason string) (Order, error) {
	body := map[string]string{}
	if reason != "" {
		body["reason"] = reason
	}
	var o Order
	return o, c.do(ctx, http.MethodPost, path(id)+"/cancel", key, body, &o)
}

func path(id int64) string { return "/api/orders/" + strconv.FormatInt(id, 10) }

func (c *Client) do(ctx context.Context, method, path, key string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(method, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return c.unreachable(method, err)
	}
	if resp.StatusCode >= 300 {
		return answered(resp, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("the answer of %s is not the order API's; check the address", c.base)
	}
	return nil
}

func (c *Client) unreachable(method string, err error) error {
	var refused *net.OpError
	notSent := errors.As(err, &refused) && refused.Op == "dial"
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err // the URL is said once
	}
	return &UnreachableError{URL: c.base, Maybe: method != http.MethodGet && !notSent, Err: err}
}

func answered(resp *http.Response, text []byte) error {
	e := &Error{}
	if json.Unmarshal(text, e) != nil {
		e = &Error{Detail: "not an answer of the order API; check the address"}
	}
	e.Status = resp.StatusCode
	return e
}
