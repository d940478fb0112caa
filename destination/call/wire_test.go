package call_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

// wire is a server on a bare socket: a script answers each request, and every
// request that arrives is kept as it came.
type wire struct {
	listener net.Listener
	answer   func(n int, conn net.Conn) (keep bool)

	mu       sync.Mutex
	requests []string
	conns    sync.WaitGroup
}

func serveWire(t *testing.T, answer func(n int, conn net.Conn) bool) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{listener: listener, answer: answer}
	w.conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.conns.Go(func() { w.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.conns.Wait()
	})
	return w
}

func (w *wire) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var raw strings.Builder
	reader := bufio.NewReader(io.TeeReader(conn, &raw))
	for {
		raw.Reset()
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		w.mu.Lock()
		w.requests = append(w.requests, raw.String())
		n := len(w.requests)
		w.mu.Unlock()
		if !w.answer(n, conn) {
			return
		}
	}
}

func (w *wire) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.requests...)
}

func (w *wire) url() string { return "http://" + w.listener.Addr().String() }

// live resolves a file with the given address and auth.
func live(t *testing.T, base, auth string) func() (spec.Live, error) {
	t.Helper()
	text := "destination: billing\non: E\nbase_url: \"${env:URL}\"\nidempotent: true\n" + auth + "\nrequest: { url: /a }\nrevert: none\n"
	s, err := spec.Parse("t.yaml", []byte(text))
	require.NoError(t, err)
	return func() (spec.Live, error) {
		return s.Resolve(spec.Lookup{Env: func(name string) (string, bool) {
			value, ok := map[string]string{"URL": base, "TOKEN": "canary-token \"1\""}[name]
			return value, ok
		}})
	}
}

func newSender(t *testing.T, cfg call.Config) *call.Sender {
	t.Helper()
	cfg.Destination = "billing"
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	s, err := call.NewSender(cfg)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func attempt(method, url, body string) call.Attempt {
	r := render.Request{Method: method, Base: "${env:URL}", URL: url, Header: []render.Header{{Name: "X-Event-Id", Value: "e1"}}}
	if body != "" {
		r.Body = []byte(body)
		r.Header = append(r.Header, render.Header{Name: "Content-Type", Value: "application/json"})
	}
	return call.Attempt{Request: r, Key: "e1:billing:do", Direction: call.Do}
}

func reply(conn net.Conn, text string) {
	_, _ = io.WriteString(conn, text)
}

const okReply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

var wireMethods = []struct{ method, body string }{
	{"GET", ""}, {"HEAD", ""}, {"POST", `{"a":1}`}, {"POST", ""}, {"PUT", `{"a":1}`}, {"PUT", ""},
	{"PATCH", `{"a":1}`}, {"PATCH", ""}, {"DELETE", ""}, {"DELETE", `{"a":1}`},
}

// TestG04OneRequestOnTheWire is invariant G4: a reused connection dies after the
// server has read the request, and nothing is sent again.
func TestG04OneRequestOnTheWire(t *testing.T) {
	t.Parallel()
	for _, m := range wireMethods {
		t.Run(m.method+m.body, func(t *testing.T) {
			t.Parallel()
			w := serveWire(t, func(n int, conn net.Conn) bool {
				if n > 1 {
					return false // read, then closed without a word
				}
				reply(conn, "HTTP/1.1 204 No Content\r\n\r\n")
				return true
			})
			s := newSender(t, call.Config{Resolve: live(t, w.url(), "")})
			first := s.Send(t.Context(), attempt(m.method, "/a", m.body))
			require.Equal(t, call.Succeeded, first.Class, first.Err)
			second := s.Send(t.Context(), attempt(m.method, "/a", m.body))
			require.Equal(t, call.Unknown, second.Class)
			require.True(t, second.Sent)
			require.True(t, second.Maybe)
			require.Len(t, w.seen(), 2, "one request per attempt")
			var failure *call.Error
			require.ErrorAs(t, second.Err, &failure)
			require.Equal(t, call.KindCut, failure.Kind)
		})
	}
}

// TestTransportWouldRepeat shows that the server above makes net/http repeat
// a request that is put in the usual way. Without this the test before would
// prove nothing.
func TestTransportWouldRepeat(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST"} {
		w := serveWire(t, func(n int, conn net.Conn) bool {
			if n == 2 {
				return false
			}
			reply(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			return true
		})
		transport := &http.Transport{}
		for range 2 {
			r, err := http.NewRequestWithContext(t.Context(), method, w.url(), strings.NewReader(`{}`))
			require.NoError(t, err)
			r.Header.Set("Idempotency-Key", "k")
			response, err := transport.RoundTrip(r)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		}
		require.Len(t, w.seen(), 3, "net/http has repeated the second request")
		transport.CloseIdleConnections()
	}
}

// TestRequestBytes pins what each method looks like on the wire.
func TestRequestBytes(t *testing.T) {
	t.Parallel()
	for _, m := range wireMethods {
		w := serveWire(t, func(_ int, conn net.Conn) bool {
			reply(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			return false
		})
		s := newSender(t, call.Config{Resolve: live(t, w.url()+"/v1/", `auth: { bearer: "${env:TOKEN}" }`)})
		a := attempt(m.method, "/a%2Fb?q=x%20y&z=1", m.body)
		x := s.Send(t.Context(), a)
		require.Equal(t, call.Succeeded, x.Class, x.Err)
		require.Len(t, w.seen(), 1)
		raw := w.seen()[0]
		require.True(t, strings.HasPrefix(raw, m.method+" /v1/a%2Fb?q=x%20y&z=1 HTTP/1.1\r\nHost: "+w.listener.Addr().String()+"\r\n"), raw)
		head, body, _ := strings.Cut(raw, "\r\n\r\n")
		require.Equal(t, m.body, body)
		lower := strings.ToLower(head)
		require.Equal(t, 1, strings.Count(lower, "\r\nidempotency-key: e1:billing:do"))
		require.Contains(t, head, "\r\nX-Event-Id: e1")
		require.Contains(t, head, "\r\nAuthorization: Bearer canary-token")
		require.NotContains(t, lower, "transfer-encoding")
		require.NotContains(t, lower, "expect:")
		switch {
		case m.body != "":
			require.Contains(t, lower, "\r\ncontent-length: 7")
		case m.method == "GET" || m.method == "HEAD" || m.method == "DELETE":
			require.NotContains(t, lower, "content-length")
		default:
			require.Contains(t, lower, "\r\ncontent-length: 0")
		}
		for _, h := range a.Request.Header {
			require.NotEqual(t, "Authorization", h.Name, "credentials never enter the stored request")
		}
	}
}

// TestStaleConnectionIsReplaced lets the server close an idle connection; the
// next attempt goes out once, on a new one.
func TestStaleConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 8)
	w := serveWire(t, func(_ int, conn net.Conn) bool {
		reply(conn, okReply)
		_ = conn.Close()
		closed <- struct{}{}
		return false
	})
	s := newSender(t, call.Config{Resolve: live(t, w.url(), "")})
	for i := range 5 {
		x := s.Send(t.Context(), attempt("POST", "/a", `{}`))
		<-closed
		if x.Class == call.Unknown {
			// The close was still under way when the request went out.
			require.True(t, x.Sent)
			continue
		}
		require.Equal(t, call.Succeeded, x.Class, "attempt %d: %v", i, x.Err)
	}
}

func TestReuse(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ports := map[string]bool{}
	w := serveWire(t, func(_ int, conn net.Conn) bool {
		mu.Lock()
		ports[conn.RemoteAddr().String()] = true
		mu.Unlock()
		reply(conn, okReply)
		return true
	})
	s := newSender(t, call.Config{Resolve: live(t, w.url(), "")})
	for range 20 {
		require.Equal(t, call.Succeeded, s.Send(t.Context(), attempt("POST", "/a", `{}`)).Class)
	}
	require.Len(t, ports, 1)
}

func TestNothingSent(t *testing.T) {
	t.Parallel()
	closedPort := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		return "http://" + l.Addr().String()
	}
	w := serveWire(t, func(_ int, conn net.Conn) bool { reply(conn, okReply); return true })
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	boom := errors.New("lease is gone")
	cases := map[string]struct {
		base   string
		change func(*call.Attempt)
		ctx    context.Context
		kind   call.Kind
		class  call.Class
		cause  error
	}{
		"refused":           {base: closedPort(), kind: call.KindConnect, class: call.NotSent},
		"no such name":      {base: "http://billing.invalid", kind: call.KindDNS, class: call.NotSent},
		"no TLS there":      {base: strings.Replace(w.url(), "http:", "https:", 1), kind: call.KindCut, class: call.NotSent},
		"canceled":          {base: w.url(), ctx: canceled, kind: call.KindCanceled, class: call.NotSent, cause: context.Canceled},
		"deadline passed":   {base: w.url(), change: func(a *call.Attempt) { a.Deadline = time.Now().Add(-time.Millisecond) }, kind: call.KindDeadline, class: call.NotSent},
		"held back":         {base: w.url(), change: func(a *call.Attempt) { a.Before = func() error { return boom } }, kind: call.KindHeldBack, class: call.NotSent, cause: boom},
		"wall-clock time":   {base: w.url(), change: func(a *call.Attempt) { a.Deadline = time.Now().Add(time.Hour).Round(0) }, kind: call.KindSetup, class: call.Misconfigured},
		"no key":            {base: w.url(), change: func(a *call.Attempt) { a.Key = "" }, kind: call.KindSetup, class: call.Misconfigured},
		"bad key":           {base: w.url(), change: func(a *call.Attempt) { a.Key = "a\r\nb" }, kind: call.KindSetup, class: call.Misconfigured},
		"address not set":   {base: "", kind: call.KindSetup, class: call.Misconfigured},
		"leaves the base":   {base: w.url(), change: func(a *call.Attempt) { a.Request.URL = "@evil.example/x" }, kind: call.KindSetup, class: call.Misconfigured},
		"fragment":          {base: w.url(), change: func(a *call.Attempt) { a.Request.URL = "/x#y" }, kind: call.KindSetup, class: call.Misconfigured},
		"invalid in header": {base: w.url(), change: func(a *call.Attempt) { a.Request.Header[0].Value = "a\nb" }, kind: call.KindCut, class: call.NotSent},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSender(t, call.Config{Resolve: live(t, c.base, "")})
			a := attempt("POST", "/a?api_key=canary", `{}`)
			if c.change != nil {
				c.change(&a)
			}
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			x := s.Send(ctx, a)
			require.Equal(t, c.class, x.Class, x.Err)
			require.False(t, x.Sent)
			require.False(t, x.Maybe)
			require.Zero(t, x.Status)
			var failure *call.Error
			require.ErrorAs(t, x.Err, &failure)
			require.Equal(t, c.kind, failure.Kind, x.Err)
			require.ErrorContains(t, x.Err, "call billing")
			require.NotContains(t, x.Err.Error(), "canary")
			require.NotContains(t, x.Err.Error(), "/a")
			if c.cause != nil {
				require.ErrorIs(t, x.Err, c.cause)
			}
		})
	}
	require.Empty(t, w.seen(), "no request has arrived")
}

// TestGateOnReusedConnection: Before and the deadline also guard a connection
// that is already open, and are asked once per attempt.
func TestGateOnReusedConnection(t *testing.T) {
	t.Parallel()
	w := serveWire(t, func(_ int, conn net.Conn) bool { reply(conn, okReply); return true })
	s := newSender(t, call.Config{Resolve: live(t, w.url(), "")})
	asked := 0
	a := attempt("POST", "/a", strings.Repeat(" ", 100_000))
	a.Before = func() error { asked++; return nil }
	a.Deadline = time.Now().Add(time.Hour)
	require.Equal(t, call.Succeeded, s.Send(t.Context(), a).Class)
	require.Equal(t, 1, asked)
	a.Before = func() error { asked++; return errors.New("no") }
	require.Equal(t, call.NotSent, s.Send(t.Context(), a).Class)
	require.Equal(t, 2, asked)
	a.Before, a.Deadline = nil, time.Now()
	require.Equal(t, call.NotSent, s.Send(t.Context(), a).Class)
	require.Len(t, w.seen(), 1)
}
