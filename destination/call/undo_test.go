package call_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/spec"
)

// TestUndoIsCalledByTheSameRules: the timeout and the reading of Retry-After are the destination's, whatever the direction; only what
// is gone already is good news for an undo.
func TestUndoIsCalledByTheSameRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, reply string // no reply hangs
		do, undo      call.Class
		wait          time.Duration
	}{
		"hangs":               {"POST", "", call.Unknown, call.Unknown, 0},
		"is told to wait":     {"POST", "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", call.Retry, call.Retry, 7 * time.Second},
		"is told nothing":     {"POST", "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", call.Retry, call.Retry, 30 * time.Second},
		"finds nothing":       {"POST", "HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n", call.Refused, call.Refused, 0},
		"deletes nothing":     {"DELETE", "HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n", call.Refused, call.Succeeded, 0},
		"deletes what is not": {"DELETE", "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", call.Refused, call.Succeeded, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			w := serveWire(t, func(_ int, conn net.Conn) bool {
				if c.reply == "" {
					<-release
					return false
				}
				reply(conn, c.reply)
				return true
			})
			defer close(release)
			s := newSender(t, call.Config{
				Resolve: live(t, w.url(), ""), Timeout: 750 * time.Millisecond,
				RetryAfter: spec.RetryAfter{Header: "Retry-After", Fallback: 30 * time.Second, Cap: time.Minute},
			})
			for direction, want := range map[call.Direction]call.Class{call.Do: c.do, call.Undo: c.undo} {
				a := attempt(c.method, "/a", "")
				a.Direction = direction
				x := s.Send(t.Context(), a)
				require.Equal(t, want, x.Class, "%s: %v", direction, x.Err)
				require.Equal(t, c.wait, x.RetryAfter, direction)
				require.Equal(t, want == call.Unknown, x.Maybe, direction)
			}
		})
	}
}
