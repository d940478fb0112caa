package probe

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatOfAProcessWithAnyName(t *testing.T) {
	t.Parallel()
	p, ok := parseStat(7, []byte("7 (a) b (c) S 3 7 7 0 -1 4194560 100 0 0 0 150 50 1000 250 20 0 1 0 300 0 0"))
	require.True(t, ok)
	require.Equal(t, process{pid: 7, parent: 3, own: 2, children: 12.5}, p)
	for _, text := range []string{"", "7 (a", "7 (a) S 3", "7 (a) S x 7 7 0 -1 4194560 100 0 0 0 150 50 1000 250"} {
		_, ok := parseStat(7, []byte(text))
		require.False(t, ok, text)
	}
}

func TestQuantilesAndMedian(t *testing.T) {
	t.Parallel()
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(100 - i)
	}
	require.InDelta(t, 4, Median([]float64{5, 1, 4}), 0)
	require.InDelta(t, 2.5, Median([]float64{4, 1, 2, 3}), 0)
	require.Zero(t, Median(nil))
	require.Equal(t, Spread{P50: 51, P99: 100, N: 100}, SpreadOf(values))
	require.Equal(t, Spread{}, SpreadOf(nil))
}

func TestBusySessions(t *testing.T) {
	t.Parallel()
	active, inTx := "active", "idle in transaction"
	for _, c := range []struct {
		backend     string
		state       *string
		kind, event string
		want        string
		counted     bool
	}{
		{"client backend", &active, "", "", "CPU", true},
		{"client backend", &active, "LWLock", "WALWrite", "LWLock/WALWrite", true},
		{"client backend", &inTx, "Client", "ClientRead", "client, in transaction", true},
		{"walsender", &active, "Client", "WalSenderWaitForWal", "", false},
		{"walwriter", nil, "Activity", "WalWriterMain", "", false},
		{"walwriter", nil, "IO", "WALSync", "walwriter: IO/WALSync", true},
	} {
		got, counted := busy(c.backend, c.state, c.kind, c.event)
		require.Equal(t, c.want, got)
		require.Equal(t, c.counted, counted)
	}
	require.Equal(t, "SELECT 1 FROM x", fingerprint("SELECT 1\n\tFROM  x"))
}

// message is one of the frontend's, with a type unless that is 0.
func message(kind byte, body string) []byte {
	var out []byte
	if kind != 0 {
		out = append(out, kind)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(4+len(body)))
	return append(out, body...)
}

func TestWireCountsWhatPasses(t *testing.T) {
	t.Parallel()
	server, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	received := make(chan []byte, 1)
	go func() {
		conn, err := server.Accept()
		if err != nil {
			close(received)
			return
		}
		text, _ := io.ReadAll(conn)
		_ = conn.Close()
		received <- text
	}()
	ctx, stop := context.WithCancel(t.Context())
	wire, err := NewWire(ctx, server.Addr().String())
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- wire.Run(ctx) }()

	var sent []byte
	for _, m := range [][]byte{
		message(0, "startup that looks like QSEP"), message('Q', "SELECT 1\x00"), message('P', "name\x00sql\x00\x00\x00"),
		message('B', "SSSS"), message('E', "\x00\x00\x00\x00\x00"), message('E', "\x00\x00\x00\x00\x00"), message('S', ""),
	} {
		sent = append(sent, m...)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", wire.Addr())
	require.NoError(t, err)
	for i := range sent { // byte by byte: no message may depend on how it is cut
		_, err := conn.Write(sent[i : i+1])
		require.NoError(t, err)
	}
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	// The proxy passes on the end of the client by closing, after every byte.
	stopOnEnd := <-received
	require.Equal(t, sent, stopOnEnd)
	require.Equal(t, Counts{Trips: 2, Statements: 3, Parses: 1, Bytes: int64(len(sent))}, wire.Counts())
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, conn.Close())
	require.NoError(t, server.Close())
}
