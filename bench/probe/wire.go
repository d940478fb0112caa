package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Wire is a proxy in front of PostgreSQL that counts what clients send. A round trip is a message that the client waits behind:
// Sync of the extended protocol, or a simple Query.
type Wire struct {
	server string
	ln     net.Listener

	trips, statements, parses, bytes atomic.Int64
}

// Counts is what passed a Wire.
type Counts struct {
	Trips      int64 `json:"trips"`      // round trips
	Statements int64 `json:"statements"` // executed statements, BEGIN and COMMIT included
	Parses     int64 `json:"parses"`     // statements that were prepared
	Bytes      int64 `json:"bytes"`      // to the server
}

// Minus gives what passed since an earlier count.
func (c Counts) Minus(earlier Counts) Counts {
	return Counts{c.Trips - earlier.Trips, c.Statements - earlier.Statements, c.Parses - earlier.Parses, c.Bytes - earlier.Bytes}
}

// NewWire listens on loopback for connections to the server's address. The connections must not use TLS.
func NewWire(ctx context.Context, server string) (*Wire, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wire proxy: %w", err)
	}
	return &Wire{server: server, ln: ln}, nil
}

// Addr is where to connect to.
func (w *Wire) Addr() string { return w.ln.Addr().String() }

// Counts is what has passed so far.
func (w *Wire) Counts() Counts {
	return Counts{w.trips.Load(), w.statements.Load(), w.parses.Load(), w.bytes.Load()}
}

// Run passes connections through until ctx ends.
func (w *Wire) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = w.ln.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		client, err := w.ln.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("wire proxy: %w", err)
		}
		all.Go(func() { w.pass(ctx, client) })
	}
}

func (w *Wire) pass(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	var d net.Dialer
	server, err := d.DialContext(ctx, "tcp", w.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, io.TeeReader(client, &frontend{wire: w}))
}

// frontend counts the messages of one client as their bytes pass by.
type frontend struct {
	wire    *Wire
	started bool   // the startup message, which has no type, is over
	head    []byte // of the message that begins
	rest    int    // bytes of the current message that are still to come
}

func (f *frontend) Write(p []byte) (int, error) {
	n := len(p)
	f.wire.bytes.Add(int64(n))
	for len(p) > 0 {
		if f.rest > 0 {
			k := min(f.rest, len(p))
			f.rest -= k
			p = p[k:]
			continue
		}
		f.head = append(f.head, p[0])
		p = p[1:]
		f.begin()
	}
	return n, nil
}

// begin looks whether the head of a message is complete: a type, unless it is the startup message, and four bytes of length.
func (f *frontend) begin() {
	size := 5
	if !f.started {
		size = 4
	}
	if len(f.head) < size {
		return
	}
	f.rest = int(binary.BigEndian.Uint32(f.head[size-4:])) - 4
	if f.started {
		f.count(f.head[0])
	}
	f.started, f.head = true, f.head[:0]
}

func (f *frontend) count(kind byte) {
	switch kind {
	case 'Q':
		f.wire.trips.Add(1)
		f.wire.statements.Add(1)
	case 'S':
		f.wire.trips.Add(1)
	case 'E':
		f.wire.statements.Add(1)
	case 'P':
		f.wire.parses.Add(1)
	}
}
