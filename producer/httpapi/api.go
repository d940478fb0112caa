package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"github.com/ebbline/ebb/producer/order"
)

// Store is where the orders are. Errors are those of package order.
type Store interface {
	Create(ctx context.Context, n order.New, r order.Request) (order.Result, error)
	UpdateStatus(ctx context.Context, id int64, to order.Status, r order.Request) (order.Result, error)
	Cancel(ctx context.Context, id int64, reason string, r order.Request) (order.Result, error)
	SoftDelete(ctx context.Context, id int64) error
	Get(ctx context.Context, id int64) (order.Order, error)
	List(ctx context.Context, f order.Filter) (orders []order.Order, nextBefore int64, err error)
}

// Sagas knows the sagas of an order.
type Sagas interface {
	// OrderSagas returns what encoding/json shows as the order's sagas with
	// their steps. The order's id is its text, as in record keys.
	OrderSagas(ctx context.Context, orderID string) (any, error)
}

// Config is what an API needs.
type Config struct {
	// Store is required.
	Store Store
	// CurrencyScale gives the number of digits behind the point of an ISO 4217
	// code, and false for a code that is none. Required.
	CurrencyScale func(code string) (int, bool)
	// Sagas adds "sagas" to a single order. Nil: they are left out.
	Sagas Sagas
	// Logger gets failures that are not the client's. Nil: nothing is logged.
	Logger *slog.Logger
}

// API answers the requests. Make it with New.
type API struct {
	store Store
	scale func(string) (int, bool)
	sagas Sagas
	log   *slog.Logger
	mux   *http.ServeMux
	guard *http.CrossOriginProtection
}

// New checks the configuration and returns the API as a handler of all paths
// below /api/orders.
func New(cfg Config) (*API, error) {
	var problems []error
	if cfg.Store == nil {
		problems = append(problems, errors.New("missing Store"))
	}
	if cfg.CurrencyScale == nil {
		problems = append(problems, errors.New("missing CurrencyScale"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("order API: configuration: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{store: cfg.Store, scale: cfg.CurrencyScale, sagas: cfg.Sagas, log: cfg.Logger, mux: http.NewServeMux(), guard: http.NewCrossOriginProtection()}
	a.route("/api/orders", methods{http.MethodPost: a.create, http.MethodGet: a.list})
	a.route("/api/orders/{id}", methods{http.MethodGet: a.get, http.MethodDelete: a.remove})
	a.route("/api/orders/{id}/status", methods{http.MethodPut: a.updateStatus})
	a.route("/api/orders/{id}/cancel", methods{http.MethodPost: a.cancel, http.MethodDelete: a.cancel})
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, notFound.problem("no such path"))
	})
	return a, nil
}

// ServeHTTP answers one request. A browser sends a cancel without a body to any
// site that another one names, so what comes from elsewhere is refused.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := a.guard.Check(r); err != nil {
		a.fail(w, r, crossOrigin.problem("a browser sent this for a page of another origin; changes are accepted from this origin's pages and from other programs"))
		return
	}
	a.mux.ServeHTTP(w, r)
}

// methods are the handlers of one path. A handler writes its answer or returns
// why it could not.
type methods map[string]func(http.ResponseWriter, *http.Request) error

func (a *API) route(path string, handlers methods) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		handle, ok := handlers[method]
		if !ok {
			continue
		}
		allowed = append(allowed, method)
		if method == http.MethodGet {
			allowed = append(allowed, http.MethodHead) // the mux gives it to the same handler
		}
		a.mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := handle(w, r); err != nil {
				a.fail(w, r, err)
			}
		})
	}
	allow := strings.Join(allowed, ", ")
	a.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		a.fail(w, r, methodForbidden.problem("allowed here: %s", allow))
	})
}

func (a *API) create(w http.ResponseWriter, r *http.Request) error {
	b, err := readBody(w, r, true)
	if err != nil {
		return err
	}
	n, err := a.newOrder(b)
	if err != nil {
		return err
	}
	request, err := requestOf(r, b.raw, http.StatusCreated)
	if err != nil {
		return err
	}
	result, err := a.store.Create(r.Context(), n, request)
	if err != nil {
		return err
	}
	w.Header().Set("Location", fmt.Sprintf("/api/orders/%d", result.Order.ID))
	return writeResult(w, result)
}

// newOrder reads the fields of an order; every problem is reported at once.
func (a *API) newOrder(b *body) (order.New, error) {
	n := order.New{
		CustomerID:   b.text("customerId"),
		Currency:     b.text("currency"),
		ShippingType: order.ShippingType(b.text("shippingType")),
	}
	scale, known := a.scale(n.Currency)
	if !known {
		b.report("currency", "must be an ISO 4217 code of a currency with a minor unit, such as EUR")
		scale = order.MaxScale // the other faults of the amount are still worth a word
	}
	n.Amount = b.amount("totalAmount", scale)
	b.refuseOthers("customerId", "totalAmount", "currency", "shippingType")
	b.merge(n.Validate())
	return n, b.err(true)
}

func (a *API) updateStatus(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	b, err := readBody(w, r, true)
	if err != nil {
		return err
	}
	to := order.Status(b.text("status"))
	b.refuseOthers("status")
	if _, err := order.CommandFor(to); err != nil {
		b.merge(err)
	}
	if err := b.err(true); err != nil {
		return err
	}
	request, err := requestOf(r, b.raw, http.StatusOK)
	if err != nil {
		return err
	}
	result, err := a.store.UpdateStatus(r.Context(), id, to, request)
	if err != nil {
		return err
	}
	return writeResult(w, result)
}

// defaultReason is the reason of a cancel that gives none.
const defaultReason = "cancelled by request"

func (a *API) cancel(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	b, err := readBody(w, r, false)
	if err != nil {
		return err
	}
	reason := defaultReason
	if b.has("reason") {
		reason = b.text("reason")
		b.merge(order.CheckReason(reason))
	}
	b.refuseOthers("reason")
	if err := b.err(true); err != nil {
		return err
	}
	request, err := requestOf(r, b.raw, http.StatusOK)
	if err != nil {
		return err
	}
	result, err := a.store.Cancel(r.Context(), id, reason, request)
	if err != nil {
		return err
	}
	return writeResult(w, result)
}

func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	if err := a.store.SoftDelete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	o, err := a.store.Get(r.Context(), id)
	if err != nil {
		return err
	}
	view := viewOf(o)
	if a.sagas != nil {
		a.addSagas(r, &view)
	}
	return writeJSON(w, http.StatusOK, view)
}

// addSagas leaves the order readable while the journal is not.
func (a *API) addSagas(r *http.Request, view *orderView) {
	sagas, err := a.sagas.OrderSagas(r.Context(), view.Number)
	if err == nil {
		view.Sagas, err = marshal(sagas)
	}
	if err != nil {
		view.Sagas, view.SagasUnavailable = nil, true
		a.log.WarnContext(r.Context(), "order API: sagas of an order cannot be read", slog.String("order_id", view.Number), slog.Any("error", err))
	}
}

func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	filter, err := filterOf(r.URL.RawQuery)
	if err != nil {
		return err
	}
	orders, next, err := a.store.List(r.Context(), filter)
	if err != nil {
		return err
	}
	page := pageView{Orders: make([]orderView, len(orders))}
	for i, o := range orders {
		page.Orders[i] = viewOf(o)
	}
	if next != 0 {
		path := nextPath(r.URL.Query(), next)
		page.NextBefore, page.Next = &next, &path
		w.Header().Set("Link", "<"+path+`>; rel="next"`)
	}
	return writeJSON(w, http.StatusOK, page)
}

// requestOf collects what makes the call repeatable and traceable.
func requestOf(r *http.Request, raw []byte, status int) (order.Request, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return order.Request{}, err
	}
	hash := sha256.New()
	hash.Write([]byte(r.Method + " " + r.URL.Path + "\n"))
	hash.Write(raw)
	return order.Request{
		Key: key, Hash: [32]byte(hash.Sum(nil)), TraceParent: traceParent(r),
		Respond: func(o order.Order) order.Response { return responseOf(o, status) },
	}, nil
}

func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	invisible := func(c rune) bool { return c <= ' ' || c > '~' }
	if key := values[0]; len(values) == 1 && key != "" && len(key) <= order.MaxKey && !strings.ContainsFunc(key, invisible) {
		return key, nil
	}
	return "", invalid(false, []order.Problem{{
		Field:  "Idempotency-Key",
		Detail: fmt.Sprintf("must be one header of 1 to %d visible ASCII characters", order.MaxKey),
	}}, 1)
}

var traceParentPattern = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

func traceParent(r *http.Request) string {
	value := r.Header.Get("traceparent")
	parts := traceParentPattern.FindStringSubmatch(value)
	if parts == nil || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ""
	}
	return value
}
