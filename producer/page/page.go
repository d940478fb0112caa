package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ebbline/ebb/producer/order"
)

// Store is where the orders are. Errors are those of package order.
type Store interface {
	Create(ctx context.Context, n order.New, r order.Request) (order.Result, error)
	Cancel(ctx context.Context, id int64, reason string, r order.Request) (order.Result, error)
	Get(ctx context.Context, id int64) (order.Order, error)
	List(ctx context.Context, f order.Filter) (orders []order.Order, nextBefore int64, err error)
}

// Config is what a Page needs.
type Config struct {
	// Store is required.
	Store Store
	// CurrencyScale gives the number of digits behind the point of an ISO 4217
	// code, and false for a code that is none. Required.
	CurrencyScale func(code string) (int, bool)
	// Journal adds sagas to an order's page. Nil: they are left out.
	Journal Journal
	// Logger gets failures that are not the visitor's. Nil: nothing is logged.
	Logger *slog.Logger
}

// Page answers the requests. Make it with New.
type Page struct {
	store   Store
	scale   func(string) (int, bool)
	journal Journal
	log     *slog.Logger
	views   map[string]*template.Template
	assets  assets
	handler http.Handler
}

// New checks the configuration and returns the page as a handler of /.
func New(cfg Config) (*Page, error) {
	var problems []error
	if cfg.Store == nil {
		problems = append(problems, errors.New("missing Store"))
	}
	if cfg.CurrencyScale == nil {
		problems = append(problems, errors.New("missing CurrencyScale"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("order page: configuration: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Page{store: cfg.Store, scale: cfg.CurrencyScale, journal: cfg.Journal, log: cfg.Logger}
	var err error
	if p.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if p.views, err = loadViews(p.assets); err != nil {
		return nil, err
	}
	p.handler = p.routes()
	return p, nil
}

// ServeHTTP answers one request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	p.handler.ServeHTTP(w, r)
}

// protect sets what keeps a browser from doing anything that no page here needs.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// Not no-referrer: with it browsers send `Origin: null` with forms, by which
	// their origin could not be told from a foreign one.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// routes is the table of doc.go.
func (p *Page) routes() http.Handler {
	mux := http.NewServeMux()
	p.route(mux, "/{$}", methods{http.MethodGet: p.list})
	p.route(mux, "/orders", methods{http.MethodPost: p.create})
	p.route(mux, "/orders/new", methods{http.MethodGet: p.blank})
	p.route(mux, "/orders/{id}", methods{http.MethodGet: p.show})
	p.route(mux, "/orders/{id}/cancel", methods{http.MethodGet: p.askCancel, http.MethodPost: p.cancel})
	p.route(mux, "/assets/{name}", methods{http.MethodGet: p.assets.serve})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { p.fail(w, r, errNoPage) })
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.message(w, r, http.StatusForbidden, "The request came from another site and was refused. Send the form of this site.")
	}))
	return guard.Handler(mux)
}

// errNoPage says that there is nothing to show here.
var errNoPage = errors.New("no such page")

// methods are the handlers of one path. A handler writes its answer or returns
// why it could not.
type methods map[string]func(http.ResponseWriter, *http.Request) error

func (p *Page) route(mux *http.ServeMux, path string, handlers methods) {
	allow := strings.Join(slices.Sorted(maps.Keys(handlers)), ", ")
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet // the server leaves the body out
		}
		handle, ok := handlers[method]
		if !ok {
			w.Header().Set("Allow", allow)
			p.message(w, r, http.StatusMethodNotAllowed, "This page cannot be asked for in that way.")
			return
		}
		if err := handle(w, r); err != nil {
			p.fail(w, r, err)
		}
	})
}

// fail answers with the page that err is. Only errors of known types show their
// text.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	var (
		missing *order.NotFoundError
		refused *order.TransitionError
		down    *order.UnavailableError
	)
	switch {
	case errors.Is(err, errNoPage):
		p.message(w, r, http.StatusNotFound, "There is no such page.")
	case errors.As(err, &missing):
		p.message(w, r, http.StatusNotFound, fmt.Sprintf("There is no order %d, or it was removed.", missing.OrderID))
	case errors.As(err, &refused):
		p.message(w, r, http.StatusConflict, refused.Error())
	case errors.As(err, &down):
		p.message(w, r, http.StatusServiceUnavailable, p.unavailable(w, r, down))
	case r.Context().Err() != nil && errors.Is(err, r.Context().Err()): // the visitor has gone
	default:
		p.log.ErrorContext(r.Context(), "order page: request failed", slog.String("path", r.URL.Path), slog.Any("error", err))
		p.message(w, r, http.StatusInternalServerError, "The page could not be made; the reason is in the log of the order service.")
	}
}

// unavailable logs the reason and gives the text for the visitor.
func (p *Page) unavailable(w http.ResponseWriter, r *http.Request, down *order.UnavailableError) string {
	p.log.WarnContext(r.Context(), "order page: store unavailable", slog.Bool("maybe_stored", down.Maybe), slog.Any("error", down))
	w.Header().Set("Retry-After", "1")
	if down.Maybe {
		return "The connection to the database was lost, and the change may have been stored. Sending the same form again is safe."
	}
	return "The database is not available now, and nothing was changed. Try again."
}

func (p *Page) message(w http.ResponseWriter, r *http.Request, status int, text string) {
	err := p.render(w, status, "message", messageView{Title: http.StatusText(status), Text: text})
	if err != nil {
		p.log.ErrorContext(r.Context(), "order page: request failed", slog.Any("error", err))
		http.Error(w, text, status)
	}
}

// render makes the whole page before the first byte of it leaves.
func (p *Page) render(w http.ResponseWriter, status int, name string, data any) error {
	var buffer bytes.Buffer
	if err := p.views[name].ExecuteTemplate(&buffer, "layout", data); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(buffer.Bytes()) // a visitor who has gone is nobody's fault
	return nil
}
