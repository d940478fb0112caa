package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ebbline/ebb/producer/order"
)

// classify turns what the database cannot do now into *order.UnavailableError
// and leaves everything else as it is. The transaction was not committed.
func classify(err error) error {
	if err == nil || !unavailable(err) {
		return err
	}
	return &order.UnavailableError{Err: err}
}

// classifyCommit is classify for the end of a transaction. An answer of the
// server means that it rolled back, unless it was the server's last word: it
// may have committed before it went down. No answer means that nobody knows.
func classifyCommit(err error) error {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrTxCommitRollback), pgconn.SafeToRetry(err):
		return classify(err)
	case errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR":
		return classify(err)
	default:
		return &order.UnavailableError{Maybe: true, Err: err}
	}
}

func unavailable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return transient(pg.Code)
	}
	var (
		connect *pgconn.ConnectError
		network net.Error
	)
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// refusedValue is true for data exceptions and constraint violations: the fault
// is in the values, not in the database.
func refusedValue(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
}

// transient knows the SQLSTATEs that pass by themselves.
func transient(code string) bool {
	switch code {
	case "40001", "40P01", "55P03", "25006", // serialization, deadlock, lock timeout, read-only after a failover
		"57P01", "57P02", "57P03", "57014": // shutdown, crash, starting up, statement timeout
		return true
	}
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "53") // connection, resources
}
