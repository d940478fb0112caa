package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/journal"
)

// Attention is, beside the statuses, what AwaitOrder may wait for: an order that an operator has to look at.
const Attention = "ATTENTION"

// Order is what a client sends. Empty fields get a default.
type Order struct {
	Customer string // customer-1
	Amount   string // 10.50
	Currency string // USD
	Shipping string // domestic
}

// OrderView is what the API answers.
type OrderView struct {
	ID          json.Number        `json:"id"`
	CustomerID  string             `json:"customerId"`
	TotalAmount json.Number        `json:"totalAmount"`
	Currency    string             `json:"currency"`
	Status      string             `json:"status"`
	Attention   *string            `json:"attention"`
	Version     int64              `json:"version"`
	Event       string             `json:"createdEvent"`
	Sagas       []journal.SagaView `json:"sagas"`
}

// Saga gives the view of the order's create event, the zero view before it was read.
func (v OrderView) Saga() journal.SagaView {
	for _, s := range v.Sagas {
		if s.ID == v.Event {
			return s
		}
	}
	return journal.SagaView{}
}

// Step gives a step of the create event's saga, the zero view if there is none.
func (v OrderView) Step(destination, direction string) journal.StepView {
	for _, s := range v.Saga().Steps {
		if s.Destination == destination && s.Direction == direction {
			return s
		}
	}
	return journal.StepView{}
}

// APIError is an answer of the order API that is not a success.
type APIError struct {
	Status int
	Body   string
}

func (e *APIError) Error() string {
	return fmt.Sprintf("the order API answered %d: %s", e.Status, e.Body)
}

// Orders is a client of the order API that may be killed and started again: what gets no answer, or 503, is sent again under the
// same client key.
type Orders struct {
	t    testing.TB
	ebb  *Ebb
	base func() string
	http *http.Client
}

// Orders gives a client of the child's order API.
func (e *Ebb) Orders() *Orders { return &Orders{e.t, e, e.API, client(e.t)} }

// OrdersAt gives a client of a producer's API in a process of its own.
func OrdersAt(infra *Ebb, producer *Role) *Orders {
	return &Orders{infra.t, infra, producer.API, client(infra.t)}
}

// Create creates an order, once per client key, and gives its id.
func (o *Orders) Create(key string, order Order) string {
	o.t.Helper()
	return o.insist(http.MethodPost, "/api/orders", key, order.body()).ID.String()
}

// Cancel cancels an order.
func (o *Orders) Cancel(key, id string) OrderView {
	o.t.Helper()
	return o.insist(http.MethodPost, "/api/orders/"+id+"/cancel", key, map[string]any{"reason": "the customer changed their mind"})
}

// SetStatus moves an order to SHIPPED or DELIVERED.
func (o *Orders) SetStatus(key, id, status string) OrderView {
	o.t.Helper()
	return o.insist(http.MethodPut, "/api/orders/"+id+"/status", key, map[string]any{"status": status})
}

// Get reads an order with its sagas.
func (o *Orders) Get(id string) OrderView {
	o.t.Helper()
	return o.insist(http.MethodGet, "/api/orders/"+id, "", nil)
}

// Try makes one request; the error is an *APIError for an answer that is not a success.
func (o *Orders) Try(ctx context.Context, method, path, key string, body any) (OrderView, error) {
	var v OrderView
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return v, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, o.base()+path, content)
	if err != nil {
		return v, err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := o.http.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return v, err
	}
	if resp.StatusCode >= 300 {
		return v, &APIError{resp.StatusCode, strings.TrimSpace(string(text))}
	}
	return v, json.Unmarshal(text, &v)
}

// CreateOnce makes one try to create an order, for callers that have their own idea of insisting.
func (o *Orders) CreateOnce(ctx context.Context, key string, order Order) (id string, err error) {
	v, err := o.Try(ctx, http.MethodPost, "/api/orders", key, order.body())
	return v.ID.String(), err
}

// CancelOnce makes one try to cancel an order.
func (o *Orders) CancelOnce(ctx context.Context, key, id string) error {
	_, err := o.Try(ctx, http.MethodPost, "/api/orders/"+id+"/cancel", key, map[string]any{"reason": "the customer changed their mind"})
	return err
}

// insist repeats a request until it is answered, and fails the test for an answer that repeating cannot change.
func (o *Orders) insist(method, path, key string, body any) OrderView {
	o.t.Helper()
	var v OrderView
	testkit.Eventually(o.t, func() (bool, string) {
		var err error
		v, err = o.Try(o.t.Context(), method, path, key, body)
		if err == nil {
			return true, ""
		}
		var api *APIError
		if errors.As(err, &api) && api.Status != http.StatusServiceUnavailable {
			o.t.Fatalf("%s %s: %v", method, path, err)
		}
		return false, fmt.Sprintf("%s %s: %v", method, path, err)
	}, patience)
	return v
}

func (o Order) body() map[string]any {
	return map[string]any{
		"customerId": cmp.Or(o.Customer, "customer-1"), "totalAmount": json.Number(cmp.Or(o.Amount, "10.50")),
		"currency": cmp.Or(o.Currency, "USD"), "shippingType": cmp.Or(o.Shipping, "domestic"),
	}
}

// AwaitOrder waits until the order is in one of the states (statuses, or Attention) and gives it.
func (o *Orders) AwaitOrder(id string, states ...string) OrderView {
	o.t.Helper()
	return o.Await(id, fmt.Sprint(states), func(v OrderView) bool {
		return slices.Contains(states, v.Status) || v.Attention != nil && slices.Contains(states, Attention)
	})
}

// Await waits until the order is as wanted.
func (o *Orders) Await(id, what string, wanted func(OrderView) bool) OrderView {
	o.t.Helper()
	var v OrderView
	testkit.Eventually(o.t, func() (bool, string) {
		got, err := o.Try(o.t.Context(), http.MethodGet, "/api/orders/"+id, "", nil)
		if err != nil {
			return false, err.Error()
		}
		v = got
		return wanted(v), fmt.Sprintf("order %s is not %s: %s", id, what, v)
	}, patience)
	return v
}

// AwaitAllEnded waits until there are n orders and every one is CONFIRMED or later, REJECTED, CANCELLED, or has attention, and no
// saga is open without attention.
func (o *Orders) AwaitAllEnded(n int) {
	o.t.Helper()
	testkit.Eventually(o.t, func() (bool, string) { return o.Ended(o.t.Context(), n) }, 2*patience)
}

const endedSQL = `SELECT count(*),
	count(*) FILTER (WHERE attention IS NULL AND status IN ('PENDING', 'CANCELLING')),
	(SELECT count(*) FROM ebb.sagas WHERE attention = '' AND state IN ('RUNNING', 'FAILING', 'COMPENSATING')),
	coalesce((SELECT string_agg(o.id || ' ' || o.status, ', ') FROM (SELECT id, status FROM orders.orders
		WHERE attention IS NULL AND status IN ('PENDING', 'CANCELLING') ORDER BY id LIMIT 5) o), ''),
	coalesce((SELECT string_agg(t.what, ', ') FROM (SELECT count(*) || ' ' || destination || ' ' || direction || ' ' || state AS what FROM ebb.steps
		WHERE state IN ('EXPECTED', 'WAITING', 'READY', 'CALLING', 'RESOLVING') GROUP BY destination, direction, state ORDER BY 1) t), 'none')
FROM orders.orders`

// Ended tells whether AwaitAllEnded has nothing to wait for, and else what it waits for. A database that is away is waited for.
func (o *Orders) Ended(ctx context.Context, n int) (bool, string) {
	var orders, open, sagas int
	var some, steps string
	if err := o.ebb.DB().QueryRow(ctx, endedSQL).Scan(&orders, &open, &sagas, &some, &steps); err != nil {
		return false, err.Error()
	}
	return orders == n && open == 0 && sagas == 0,
		fmt.Sprintf("%d orders of %d, %d of them open (%s), %d sagas open, steps: %s", orders, n, open, some, sagas, steps)
}

// String is one line per saga and step, for messages.
func (v OrderView) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "order %s v%d %s", v.ID, v.Version, v.Status)
	if v.Attention != nil {
		fmt.Fprintf(&b, ", attention %q", *v.Attention)
	}
	for _, s := range v.Sagas {
		fmt.Fprintf(&b, "\n  %s v%d %s %s %s", s.EventType, s.Version, s.State, s.Attention, s.Reason)
		for _, t := range s.Steps {
			fmt.Fprintf(&b, "\n    %s %s %s attempt %d seq %d maybe %t %s %s", t.Destination, t.Direction, t.State, t.Attempt, t.Seq, t.Maybe, t.Outcome, t.Reason)
			if t.DueAt != nil {
				b.WriteString(" due " + t.DueAt.UTC().Format("15:04:05.000"))
			}
		}
	}
	return b.String()
}

// ClientKey is the n-th client key of a test.
func ClientKey(prefix string, n int) string { return prefix + "-" + strconv.Itoa(n) }
