package journal

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Retryable tells whether the error says nothing about what was to be stored: the connection was lost, the server is starting,
// stopping or out of resources, or two transactions were in each other's way. The same call may go through later.
func Retryable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch class := pg.Code[:min(2, len(pg.Code))]; class {
		case "08", "53", "57", "58": // connection, resources, operator intervention, system error
			return true
		case "40": // serialization failure, deadlock
			return true
		case "25": // idle_in_transaction timeout and read-only after a failover
			return pg.Code == "25006" || pg.Code == "25P03"
		}
		return false
	}
	var netErr net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &netErr) || errors.As(err, &connect) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed")
}
