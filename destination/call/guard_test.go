package call_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
)

// names is a DNS server that answers each question for an A record with the
// next address of its list, the last one for ever, and knows no other record.
func names(t *testing.T, addrs ...string) *net.Resolver {
	t.Helper()
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	var served sync.WaitGroup
	t.Cleanup(func() { _ = conn.Close(); served.Wait() })
	served.Go(func() {
		question := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			const typeA, end = 1, 12
			name := end + strings.IndexByte(string(question[end:n]), 0) + 1
			answer := append([]byte(nil), question[:name+4]...)
			answer[2], answer[3] = 0x81, 0x80 // a reply, recursion available
			copy(answer[6:12], make([]byte, 6))
			if binary.BigEndian.Uint16(question[name:]) == typeA {
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
				addr := netip.MustParseAddr(addrs[0]).As4()
				answer = append(answer, addr[:]...)
				if len(addrs) > 1 {
					addrs = addrs[1:]
				}
			}
			_, _ = conn.WriteTo(answer, from)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// TestGuardLooksAtTheConnectedAddress is field case F37: the name is asked again for each connection, and what counts is where the
// connection goes.
func TestGuardLooksAtTheConnectedAddress(t *testing.T) {
	t.Parallel()
	w := serveWire(t, func(_ int, conn net.Conn) bool {
		reply(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		return false
	})
	_, port, err := net.SplitHostPort(w.listener.Addr().String())
	require.NoError(t, err)
	base := "http://api.example.test:" + port
	loopback, err := call.ParseAllowPrivate("127.0.0.1/32")
	require.NoError(t, err)

	open := newSender(t, call.Config{Resolve: live(t, base, ""), AllowPrivate: loopback, Resolver: names(t, "127.0.0.1", "127.0.0.2")})
	require.Equal(t, call.Succeeded, open.Send(t.Context(), attempt("POST", "/a", `{}`)).Class)
	x := open.Send(t.Context(), attempt("POST", "/a", `{}`))
	require.Equal(t, call.Misconfigured, x.Class, "the same name, another address: %v", x.Err)
	require.False(t, x.Sent)
	require.Equal(t, call.KindAddress, kindOf(t, x.Err))

	x = newSender(t, call.Config{Resolve: live(t, base, ""), Resolver: names(t, "127.0.0.1")}).Send(t.Context(), attempt("POST", "/a", `{}`))
	require.Equal(t, call.Misconfigured, x.Class)
	require.EqualError(t, x.Err, "call billing at api.example.test:"+port+": address is not allowed: the host's address 127.0.0.1 is in a loopback or private network; "+
		"set EBB_ALLOW_PRIVATE if the destination lies there, or write the address itself in base_url")
	require.Len(t, w.seen(), 1)
}

func TestGuardRefusesWhatNobodyMeans(t *testing.T) {
	t.Parallel()
	all, err := call.ParseAllowPrivate("true")
	require.NoError(t, err)
	for base, want := range map[string]string{
		"http://169.254.169.254":               "metadata",
		"http://[::ffff:169.254.169.254]:8080": "metadata",
		"http://[fe80::1]":                     "link-local",
		"http://0.0.0.0:80":                    "unspecified",
	} {
		x := newSender(t, call.Config{Resolve: live(t, base, ""), AllowPrivate: all}).Send(t.Context(), attempt("GET", "/latest/meta-data", ""))
		require.Equal(t, call.Misconfigured, x.Class, "%s: %v", base, x.Err)
		require.ErrorContains(t, x.Err, want)
		require.False(t, x.Sent)
	}
}
