package call

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// gate belongs to one attempt on one connection. It stands at the socket: the
// first byte asks it, every byte is counted, and once sealed nothing passes.
type gate struct {
	deadline time.Time
	before   func() error
	reused   atomic.Bool // the connection has served others before

	mu      sync.Mutex // held while bytes are handed to the socket
	asked   bool
	refusal error
	written int64
}

var errSealed = errors.New("attempt is over")

// write passes p on if the gate is open.
func (g *gate) write(conn net.Conn, p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked {
		g.asked = true
		g.refusal = g.ask()
	}
	if g.refusal != nil {
		return 0, g.refusal
	}
	n, err := conn.Write(p)
	g.written += int64(n)
	return n, err
}

func (g *gate) ask() error {
	if g.before != nil {
		if err := g.before(); err != nil {
			return &heldBack{err}
		}
	}
	// Last, so that a slow Before cannot carry the send past the deadline.
	if !g.deadline.IsZero() && !time.Now().Before(g.deadline) {
		return errDeadline
	}
	return nil
}

// assumeSent is for a connection whose bytes cannot be counted: the safe
// belief is that they left.
func (g *gate) assumeSent() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written++
}

// seal ends the attempt and reports whether any byte has left: from here on
// that is final. refusal is why the gate did not open; net/http may have
// noticed the end of the connection first and tell of that.
func (g *gate) seal() (sent bool, refusal error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	refusal = g.refusal
	g.asked, g.refusal = true, errSealed
	return g.written > 0, refusal
}

// countingConn is a connection that knows whose request is being written.
type countingConn struct {
	net.Conn
	gate atomic.Pointer[gate]
}

// Write passes bytes on once the attempt's gate is open. Without an attempt
// (TLS handshake and alerts) it is a plain write.
func (c *countingConn) Write(p []byte) (int, error) {
	g := c.gate.Load()
	if g == nil {
		return c.Conn.Write(p)
	}
	return g.write(c.Conn, p)
}

// counting finds the countingConn below a TLS connection.
func counting(conn net.Conn) *countingConn {
	for conn != nil {
		switch c := conn.(type) {
		case *countingConn:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
	return nil
}

// countedDial makes countingConns.
func countedDial(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countingConn{Conn: conn}, nil
	}
}
