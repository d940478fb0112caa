package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ebbline/ebb/cmd/ebb/internal/inspect"
	"github.com/ebbline/ebb/cmd/ebb/internal/orderapi"
	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
)

// Exit codes; docs/reference/cli.md has them too.
const (
	exitOK          = 0
	exitFailed      = 1 // it was tried and did not go well
	exitUsage       = 2 // the command line or a file is wrong; nothing was tried
	exitUnreachable = 3 // nobody answers at the address
	exitNotFound    = 4 // what was named does not exist
	exitRefused     = 5 // it exists, and its state forbids what was asked for
)

// usageError is an error of what was asked for, not of what was done.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// unreachableError says that nobody answers where an address says.
type unreachableError struct{ error }

func (e *unreachableError) Unwrap() error { return e.error }

// exitOf is the one place that decides what an error means to a script.
func exitOf(err error) int {
	var usage *usageError
	var taken *lifecycle.TakenError
	var order *orderapi.Error
	var simulated *sim.APIError
	switch {
	case errors.As(err, &usage), errors.As(err, &taken):
		return exitUsage
	case isAny[*unreachableError](err), isAny[*orderapi.UnreachableError](err), isAny[*pgconn.ConnectError](err), isAny[*schemas.UnavailableError](err):
		return exitUnreachable
	case errors.As(err, &order):
		return exitOfStatus(order.Status)
	case errors.As(err, &simulated):
		return exitOfStatus(simulated.Status)
	case isOf(err, journal.ErrNoSaga, journal.ErrUnknownVersion, saga.ErrNoStep, inspect.ErrNoDeadLetter):
		return exitNotFound
	case isOf(err, saga.ErrNotParked, saga.ErrUnresolved, saga.ErrSuperseded, saga.ErrNoUndo, saga.ErrMoves, saga.ErrEarly, saga.ErrCertain,
		saga.ErrEnding, journal.ErrPaused, journal.ErrNotPaused):
		return exitRefused
	}
	return exitFailed
}

// exitOfStatus is for the answers of our own HTTP APIs.
func exitOfStatus(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return exitUsage
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict, http.StatusUnprocessableEntity, http.StatusForbidden:
		return exitRefused
	case http.StatusServiceUnavailable:
		return exitUnreachable
	}
	return exitFailed
}

func isAny[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func isOf(err error, any ...error) bool {
	for _, e := range any {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// fail prints the error and gives the exit code.
func (e *env) fail(err error) int {
	status := exitOf(err)
	if !e.json {
		fmt.Fprintln(e.stderr, "ebb:", err)
		return status
	}
	text, encodeErr := json.Marshal(struct {
		Error string `json:"error"`
		Exit  int    `json:"exit"`
	}{err.Error(), status})
	if encodeErr != nil { // two plain fields always encode
		panic("ebb: " + encodeErr.Error())
	}
	fmt.Fprintln(e.stderr, string(text))
	return status
}
