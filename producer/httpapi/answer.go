package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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

// problem is an error as the client sees it (RFC 9457).
type problem struct {
	Type   string          `json:"type"`
	Title  string          `json:"title"`
	Status int             `json:"status"`
	Detail string          `json:"detail"`
	Errors []order.Problem `json:"errors,omitempty"`

	code string
}

func (p *problem) Error() string { return p.Detail }

// fail answers with the problem that err is.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := a.problemOf(r.Context(), err)
	if p == nil {
		return
	}
	p.Type, p.Title = "urn:ebb:problem:"+p.code, http.StatusText(p.Status)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	text, err := marshal(p)
	if err != nil {
		panic("order API: " + err.Error()) // strings and numbers always encode
	}
	write(w, p.Status, "application/problem+json", append(text, '\n'))
}

// problemOf is the one place that decides what an error means to a client. Only
// errors of known types show their text. Nil: the client has gone.
func (a *API) problemOf(ctx context.Context, err error) *problem {
	var (
		own         *problem
		bad         *order.InvalidError
		missing     *order.NotFoundError
		refused     *order.TransitionError
		open        *order.OpenError
		unavailable *order.UnavailableError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &bad):
		return &problem{Status: http.StatusBadRequest, code: "invalid", Detail: "the request has invalid fields", Errors: bad.Problems}
	case errors.As(err, &missing):
		return &problem{Status: http.StatusNotFound, code: "not-found", Detail: missing.Error()}
	case errors.As(err, &refused):
		return &problem{Status: http.StatusConflict, code: "status-forbids", Detail: refused.Error()}
	case errors.As(err, &open):
		return &problem{Status: http.StatusConflict, code: "order-open", Detail: open.Error()}
	case errors.Is(err, order.ErrKeyReused):
		return &problem{Status: http.StatusUnprocessableEntity, code: "key-reused", Detail: "this Idempotency-Key belongs to a call with another method, path or body; take a new key"}
	case errors.As(err, &unavailable):
		a.log.WarnContext(ctx, "order API: store unavailable", slog.Bool("maybe_stored", unavailable.Maybe), slog.Any("error", err))
		return unavailableProblem(unavailable.Maybe)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	default:
		a.log.ErrorContext(ctx, "order API: request failed", slog.Any("error", err))
		return &problem{Status: http.StatusInternalServerError, code: "internal", Detail: "the request could not be served; the reason is in the log of the order service"}
	}
}

func unavailableProblem(maybe bool) *problem {
	detail := "the order store is not available now and nothing was changed; try again"
	if maybe {
		detail = "the connection to the order store was lost, the change may have been stored; repeat the call with the same Idempotency-Key to find out"
	}
	return &problem{Status: http.StatusServiceUnavailable, code: "unavailable", Detail: detail}
}
