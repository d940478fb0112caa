package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/ebbline/ebb/producer/order"
)

// kind is a type of problem. Its URI never changes: clients branch on it.
type kind struct {
	name   string // the last part of the type's URI
	status int
	title  string
}

func (k kind) uri() string { return "urn:ebb:problem:" + k.name }

// The types of problems; docs/reference/order-api.md describes each.
var (
	malformedBody   = kind{"malformed", http.StatusBadRequest, "The body is not a JSON object"}
	invalidRequest  = kind{"invalid", http.StatusBadRequest, "The request has invalid fields"}
	crossOrigin     = kind{"cross-origin", http.StatusForbidden, "The request came from another origin"}
	notFound        = kind{"not-found", http.StatusNotFound, "There is nothing here"}
	methodForbidden = kind{"method-not-allowed", http.StatusMethodNotAllowed, "The method is not allowed here"}
	statusForbids   = kind{"status-forbids", http.StatusConflict, "The order's status forbids it"}
	orderOpen       = kind{"order-open", http.StatusConflict, "The order has not ended"}
	tooLarge        = kind{"too-large", http.StatusRequestEntityTooLarge, "The body is too large"}
	mediaType       = kind{"unsupported-media-type", http.StatusUnsupportedMediaType, "The body is not JSON in UTF-8"}
	keyReused       = kind{"key-reused", http.StatusUnprocessableEntity, "The Idempotency-Key belongs to another call"}
	internalFault   = kind{"internal", http.StatusInternalServerError, "The order service failed"}
	unavailable     = kind{"unavailable", http.StatusServiceUnavailable, "The order store is not available"}
)

// kinds are all of them.
func kinds() []kind {
	return []kind{
		malformedBody, invalidRequest, crossOrigin, notFound, methodForbidden, statusForbids, orderOpen, tooLarge, mediaType, keyReused,
		internalFault, unavailable,
	}
}

// problem is an error as the client sees it (RFC 9457).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Instance names this occurrence, and is in the log where the fault is ours.
	Instance string       `json:"instance"`
	Errors   []fieldError `json:"errors,omitempty"`
}

// fieldError is what is wrong with one field, parameter or header.
type fieldError struct {
	Field string `json:"field"`
	// Pointer is the place in the body as a JSON pointer in a URI fragment; empty
	// for what is not in the body.
	Pointer string `json:"pointer,omitempty"`
	Detail  string `json:"detail"`
}

func (k kind) problem(format string, args ...any) *problem {
	return &problem{Type: k.uri(), Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...)}
}

func (p *problem) Error() string { return p.Detail }

// maxErrors bounds the fields that one answer names: a body may have a million.
const maxErrors = 50

// invalid is the problem of fields, in the body or not; all is their number,
// which may be more than are listed.
func invalid(inBody bool, bad []order.Problem, all int) *problem {
	p := invalidRequest.problem("%s", countOf(all))
	if all > len(bad) {
		p.Detail += fmt.Sprintf("; the first %d are listed", len(bad))
	}
	for _, b := range bad {
		e := fieldError{Field: clip(b.Field), Detail: b.Detail}
		if inBody && e.Field == b.Field {
			e.Pointer = pointer(b.Field)
		}
		p.Errors = append(p.Errors, e)
	}
	return p
}

func countOf(n int) string {
	if n == 1 {
		return "1 field is invalid"
	}
	return fmt.Sprintf("%d fields are invalid", n)
}

// pointer is the JSON pointer of a member of the body as a URI fragment (RFC 6901).
func pointer(field string) string {
	return "#/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(field))
}

// clip keeps a name that a client made up at a length that can be read.
func clip(name string) string {
	const most = 60
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return name
}

// fail answers with the problem that err is.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	instance := newInstance()
	p := a.problemOf(r.Context(), err, instance)
	if p == nil {
		return
	}
	p.Instance = instance
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	text, err := marshal(p)
	if err != nil {
		panic("order API: " + err.Error()) // strings and numbers always encode
	}
	write(w, p.Status, "application/problem+json", append(text, '\n'))
}

func newInstance() string {
	id, err := uuid.NewV7()
	if err != nil {
		return "" // no randomness: the answer is worth more than its name
	}
	return id.URN()
}

// problemOf is the one place that decides what an error means to a client. Only
// errors of known types show their text. Nil: the client has gone.
func (a *API) problemOf(ctx context.Context, err error, instance string) *problem {
	var (
		own     *problem
		bad     *order.InvalidError
		missing *order.NotFoundError
		refused *order.TransitionError
		open    *order.OpenError
		down    *order.UnavailableError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &bad):
		return invalid(true, bad.Problems, len(bad.Problems))
	case errors.As(err, &missing):
		return notFound.problem("%s", missing)
	case errors.As(err, &refused):
		return statusForbids.problem("%s", refused)
	case errors.As(err, &open):
		return orderOpen.problem("%s", open)
	case errors.Is(err, order.ErrKeyReused):
		return keyReused.problem("this Idempotency-Key belongs to a call with another method, path or body; take a new key")
	case errors.As(err, &down):
		a.log.WarnContext(ctx, "order API: store unavailable", slog.Bool("maybe_stored", down.Maybe), slog.Any("error", err), slog.String("instance", instance))
		if down.Maybe {
			return unavailable.problem("the connection to the order store was lost, the change may have been stored; repeat the call with the same Idempotency-Key to find out")
		}
		return unavailable.problem("the order store is not available now and nothing was changed; try again")
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	default:
		a.log.ErrorContext(ctx, "order API: request failed", slog.Any("error", err), slog.String("instance", instance))
		return internalFault.problem("the request could not be served; the reason is in the log of the order service, with this instance")
	}
}
