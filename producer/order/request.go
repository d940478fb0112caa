package order

import (
	"errors"
	"fmt"
)

// Request is what a client's call brings along besides its content.
type Request struct {
	// Key is the client's Idempotency-Key, at most MaxKey bytes. Empty: the call
	// is not deduplicated.
	Key string
	// Hash identifies the content of the call (method, path and body). It
	// decides whether a repeated Key is a repetition.
	Hash [32]byte
	// TraceParent is a W3C trace parent for the event, or empty.
	TraceParent string
	// Respond makes the answer to the client, which is stored with Key in the
	// same transaction. Nil: no answer is made or stored.
	Respond func(Order) Response
}

// MaxKey is the longest Idempotency-Key, in bytes.
const MaxKey = 255

// Response is the answer that a client got, and gets again for the same Key.
type Response struct {
	Status int // HTTP status
	Body   []byte
}

// Result is the end of a client's call.
type Result struct {
	Order    Order // only its ID if Replayed
	Changed  bool  // false: it was already so, or Replayed
	Replayed bool  // Response is the one of an earlier call with the same Key
	Response Response
}

// Filter selects orders for a list. The zero value selects the newest.
type Filter struct {
	Before     int64  // only ids below; 0: from the newest
	Limit      int    // 1 to MaxLimit; 0: DefaultLimit
	Status     Status // empty: all
	CustomerID string // empty: all
	Attention  bool   // only orders that need attention
}

// Limits of a list.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// ErrKeyReused says that an Idempotency-Key has been used for another call.
var ErrKeyReused = errors.New("order: this Idempotency-Key belongs to a call with other content; take a new key")

// NotFoundError says that there is no such order, or that it is deleted.
type NotFoundError struct{ OrderID int64 }

func (e *NotFoundError) Error() string { return fmt.Sprintf("order %d does not exist", e.OrderID) }

// UnavailableError says that the store could not do its work now.
type UnavailableError struct {
	// Maybe is true when the change may have been stored all the same: the
	// connection broke while it was being committed.
	Maybe bool
	Err   error
}

func (e *UnavailableError) Error() string {
	if e.Maybe {
		return "order: store lost during commit, the change may be stored: " + e.Err.Error()
	}
	return "order: store unavailable, nothing was changed: " + e.Err.Error()
}

func (e *UnavailableError) Unwrap() error { return e.Err }
