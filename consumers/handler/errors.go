package handler

import (
	"errors"
	"fmt"
	"time"

	"github.com/ebbline/ebb/journal/saga"
)

// endError is how an attempt ended if not with a success. Only this package makes one.
type endError struct {
	class saga.Class
	after time.Duration
	text  string
	cause error
}

func (e *endError) Error() string {
	if e.cause != nil {
		return e.cause.Error()
	}
	return e.text
}

func (e *endError) Unwrap() error { return e.cause }

// Refuse says that the destination has decided against it, for good: the saga is unwound, unless OnRefused says otherwise.
func Refuse(reason string) error { return &endError{class: saga.ClassRefused, text: reason} }

// RetryAfter says that the destination certainly did not process it and wants to be asked again, not before d has passed; with zero,
// when Retry says. The attempt is charged.
func RetryAfter(d time.Duration) error {
	return &endError{class: saga.ClassRetry, after: max(d, 0), text: fmt.Sprintf("the destination asks to try again after %s", max(d, 0))}
}

// Unknown says that it may have been processed. So do all errors that are not made here, and panics.
func Unknown(err error) error { return wrapped(saga.ClassUnknown, err) }

// NotSent says that certainly nothing was processed because the destination cannot be reached: an outage, which charges no attempt and
// opens the breaker when it goes on. err nil is allowed.
func NotSent(err error) error { return wrapped(saga.ClassNotSent, err) }

// Misconfigured says that certainly nothing was processed because of the set-up, such as a wrong credential: treated like an outage, but
// a step that is alone with it is parked.
func Misconfigured(err error) error { return wrapped(saga.ClassMisconfigured, err) }

// Skip says that there is nothing to do for this event, and nothing was done: the step counts as done, and needs no undo.
func Skip(reason string) error { return &endError{class: saga.ClassSkipped, text: reason} }

// Park says that nothing was done and that a person has to look: the step stops until `ebb saga retry`.
func Park(reason string) error { return &endError{class: saga.ClassParked, text: reason} }

// Pending says that the destination has accepted it and is not done yet: Lookup is asked until it tells the end. Without a Lookup the
// step parks.
func Pending(reason string) error { return &endError{class: saga.ClassPending, text: reason} }

// NotFound is Lookup's: the destination does not know the request.
func NotFound(reason string) error { return &endError{class: saga.ClassNotFound, text: reason} }

func wrapped(class saga.Class, err error) error {
	if err == nil {
		err = errors.New("no cause given")
	}
	return &endError{class: class, cause: err}
}

// classOf is what an error of a handler means.
func classOf(err error) (saga.Class, time.Duration) {
	var end *endError
	if errors.As(err, &end) {
		return end.class, end.after
	}
	return saga.ClassUnknown, 0
}

// PanicError is a handler that panicked.
type PanicError struct {
	// Value is what it panicked with.
	Value any
}

func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked with a %T", e.Value) }

// HungError says that handlers have not returned although their time was up.
type HungError struct {
	Destination string
	// Count is how many have not, and Places how many calls this process may make at a time.
	Count, Places int
	// Longest is how long the first of them has been overdue.
	Longest time.Duration
}

func (e *HungError) Error() string {
	return fmt.Sprintf("%d of %d handlers of %s hang, one for %s after its timeout; make them end with their context, and restart this process",
		e.Count, e.Places, e.Destination, e.Longest.Round(time.Millisecond))
}
