package call_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/internal/testkit"
)

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func kindOf(t *testing.T, err error) call.Kind {
	t.Helper()
	var failure *call.Error
	require.ErrorAs(t, err, &failure)
	return failure.Kind
}

func TestReplies(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", call.MaxBody+1)
	zip := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	cases := map[string]struct {
		reply string
		class call.Class
		kind  call.Kind // "" for a complete reply
		size  int
	}{
		"success":             {okReply, call.Succeeded, "", 2},
		"largest":             {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + big[1:], call.Succeeded, "", call.MaxBody},
		"too large success":   {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + big, call.Unknown, call.KindTooLarge, call.MaxBody},
		"too large refusal":   {"HTTP/1.1 422 No\r\nConnection: close\r\n\r\n" + big, call.Refused, call.KindTooLarge, call.MaxBody},
		"gzip":                {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + zip("hello"), call.Succeeded, "", 5},
		"gzip bomb":           {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + zip(strings.Repeat(big, 8)), call.Unknown, call.KindTooLarge, call.MaxBody},
		"not gzip":            {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\nhello, hello, hello!", call.Unknown, call.KindUnreadable, 0},
		"gzip cut":            {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + zip("hello")[:20], call.Unknown, call.KindCut, -1},
		"shorter than said":   {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", call.Unknown, call.KindCut, 5},
		"refusal cut":         {"HTTP/1.1 422 No\r\nContent-Length: 9\r\n\r\nhello", call.Unknown, call.KindCut, 5},
		"chunks cut":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", call.Unknown, call.KindCut, 5},
		"not HTTP":            {"SSH-2.0-canary\r\n\r\n", call.Unknown, call.KindCut, 0},
		"header cut":          {"HTTP/1.1 200 OK\r\nContent-Le", call.Unknown, call.KindCut, 0},
		"header too large":    {"HTTP/1.1 200 OK\r\nX: " + big + "\r\n\r\n", call.Unknown, call.KindCut, 0},
		"switching protocols": {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: canary\r\nConnection: Upgrade\r\n\r\n", call.Unknown, call.KindUnreadable, 0},
		"early hints first":   {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + okReply, call.Succeeded, "", 2},
		"redirect":            {"HTTP/1.1 302 Found\r\nLocation: http://canary.invalid/\r\nContent-Length: 0\r\n\r\n", call.Misconfigured, "", 0},
		"unauthorized":        {"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", call.Misconfigured, "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serveWire(t, func(_ int, conn net.Conn) bool { reply(conn, c.reply); return false })
			s := newSender(t, call.Config{Resolve: live(t, w.url(), "")})
			x := s.Send(t.Context(), attempt("POST", "/a", `{}`))
			require.Equal(t, c.class, x.Class, x.Err)
			require.True(t, x.Sent)
			require.False(t, x.Ended.Before(x.Started))
			if c.size >= 0 {
				require.Len(t, x.Body, c.size)
			}
			if c.kind == "" {
				require.NoError(t, x.Err)
				require.False(t, x.Cut)
			} else {
				require.Equal(t, c.kind, kindOf(t, x.Err))
				require.NotContains(t, x.Err.Error(), "canary")
			}
			require.Len(t, w.seen(), 1)
		})
	}
}

// TestTimeouts lets a server hang at each stage.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"no reply":     "",
		"half a head":  "HTTP/1.1 200 OK\r\nCont",
		"stalled body": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			w := serveWire(t, func(_ int, conn net.Conn) bool {
				reply(conn, sent)
				<-release
				return false
			})
			defer close(release)
			s := newSender(t, call.Config{Resolve: live(t, w.url(), ""), Timeout: 750 * time.Millisecond})
			x := s.Send(t.Context(), attempt("POST", "/a", `{}`))
			require.Equal(t, call.Unknown, x.Class)
			require.True(t, x.Maybe)
			require.Equal(t, call.KindTimeout, kindOf(t, x.Err), x.Err)
			require.ErrorIs(t, x.Err, context.DeadlineExceeded)
		})
	}
}

func TestCanceledWhileWaiting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	w := serveWire(t, func(int, net.Conn) bool {
		cancel()
		<-release
		return false
	})
	s := newSender(t, call.Config{Resolve: live(t, w.url(), "")})
	x := s.Send(ctx, attempt("POST", "/a", `{}`))
	require.Equal(t, call.Unknown, x.Class)
	require.Equal(t, call.KindCanceled, kindOf(t, x.Err))
	require.ErrorIs(t, x.Err, context.Canceled)
}

// TestHandshakeHang: a server that accepts and never speaks TLS has seen no
// byte of the request.
func TestHandshakeHang(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	s := newSender(t, call.Config{Resolve: live(t, "https://"+listener.Addr().String(), ""), Timeout: 100 * time.Millisecond})
	x := s.Send(t.Context(), attempt("POST", "/a", `{}`))
	require.Equal(t, call.NotSent, x.Class, x.Err)
	require.Equal(t, call.KindTimeout, kindOf(t, x.Err))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	seen := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen++
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)

	unknown := newSender(t, call.Config{Resolve: live(t, server.URL, "")})
	x := unknown.Send(t.Context(), attempt("POST", "/a", `{}`))
	require.Equal(t, call.Misconfigured, x.Class, "a certificate that is not trusted is a matter of set-up")
	require.Equal(t, call.KindUntrusted, kindOf(t, x.Err))
	require.False(t, x.Sent)
	require.Zero(t, seen)

	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	trusting := newSender(t, call.Config{Resolve: live(t, server.URL, ""), TLS: &tls.Config{RootCAs: roots}})
	for range 2 {
		x = trusting.Send(t.Context(), attempt("POST", "/a", `{}`))
		require.Equal(t, call.Succeeded, x.Class, x.Err)
		require.Equal(t, "HTTP/1.1", string(x.Body))
	}
	a := attempt("POST", "/a", `{}`)
	a.Before = func() error { return errors.New("no") }
	require.Equal(t, call.NotSent, trusting.Send(t.Context(), a).Class, "bytes are counted below TLS too")
	require.Equal(t, 2, seen)
	x = trusting.Send(t.Context(), attempt("POST", "/cut", `{}`))
	require.Equal(t, call.Unknown, x.Class)
	require.True(t, x.Sent)

	old := newSender(t, call.Config{Resolve: live(t, server.URL, ""), TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}})
	x = old.Send(t.Context(), attempt("POST", "/a", `{}`))
	require.Equal(t, call.NotSent, x.Class)
	require.Equal(t, call.KindTLS, kindOf(t, x.Err), x.Err)
}

// TestRetryAfter is field case F41, for whole seconds.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	rule := spec.RetryAfter{Header: "Retry-After", Fallback: 30 * time.Second, Cap: 10 * time.Minute}
	cases := map[string]struct {
		status int
		values []string
		rule   spec.RetryAfter
		class  call.Class
		want   time.Duration
	}{
		"429 seconds":        {429, []string{"2"}, rule, call.Retry, 2 * time.Second},
		"503 seconds":        {503, []string{" 2 "}, rule, call.Retry, 2 * time.Second},
		"503 bare":           {503, nil, rule, call.Unknown, 0},
		"429 bare":           {429, nil, rule, call.Retry, 30 * time.Second},
		"429 bare, no rule":  {429, nil, spec.RetryAfter{}, call.Retry, 0},
		"zero":               {429, []string{"0"}, rule, call.Retry, 30 * time.Second},
		"negative":           {429, []string{"-5"}, rule, call.Retry, 30 * time.Second},
		"fraction":           {429, []string{"1.5"}, rule, call.Retry, 30 * time.Second},
		"empty":              {503, []string{""}, rule, call.Unknown, 0},
		"word":               {503, []string{"soon"}, rule, call.Retry, 30 * time.Second},
		"a day":              {429, []string{"86400"}, rule, call.Retry, 10 * time.Minute},
		"a Unix time":        {429, []string{"1790000000"}, rule, call.Retry, 10 * time.Minute},
		"beyond all numbers": {429, []string{"99999999999999999999999"}, rule, call.Retry, 10 * time.Minute},
		"twice":              {429, []string{"2", "5"}, rule, call.Retry, 5 * time.Second},
		"not for a success":  {200, []string{"5"}, rule, call.Succeeded, 0},
		"not for a refusal":  {422, []string{"5"}, rule, call.Refused, 0},
		"default cap":        {429, []string{"86400"}, spec.RetryAfter{}, call.Retry, 10 * time.Minute},
		"fallback under cap": {429, nil, spec.RetryAfter{Fallback: time.Hour, Cap: time.Minute}, call.Retry, time.Minute},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["retry-after"] = c.values
				w.WriteHeader(c.status)
			})
			s := newSender(t, call.Config{Resolve: live(t, server.URL, ""), RetryAfter: c.rule})
			x := s.Send(t.Context(), attempt("POST", "/a", `{}`))
			require.Equal(t, c.class, x.Class)
			require.Equal(t, c.want, x.RetryAfter)
		})
	}
}

// TestNoSecretLeaves is field case F45: a canary in the credential, in the
// query and in what the destination echoes.
func TestNoSecretLeaves(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		w.Header().Set("X-Echo", auth)
		w.Header().Set("Set-Cookie", "sid=canary")
		w.Header().Set("Etag", "v1")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"got":%q,"note":"kept"}`, auth)
	})
	var log testkit.Log
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := newSender(t, call.Config{Resolve: live(t, server.URL, `auth: { bearer: "${env:TOKEN}" }`), Logger: logger})
	x := s.Send(t.Context(), attempt("POST", "/a?api_key=canary", `{}`))
	require.Equal(t, call.Misconfigured, x.Class)
	require.NotContains(t, fmt.Sprintf("%+v %s", x, x.Body), "canary")
	require.Contains(t, string(x.Body), `"note":"kept"`)
	require.Equal(t, "v1", x.Header.Get("ETag"))

	dead := newSender(t, call.Config{Resolve: live(t, "http://nowhere.invalid", `auth: { bearer: "${env:TOKEN}" }`), Logger: logger})
	x = dead.Send(t.Context(), attempt("POST", "/a?api_key=canary", `{"card":"canary"}`))
	require.Equal(t, call.NotSent, x.Class)
	require.ErrorContains(t, x.Err, "nowhere.invalid")
	require.NotContains(t, fmt.Sprintf("%+v", x), "canary")
	require.Contains(t, log.String(), "class=NOT_SENT")
	require.NotContains(t, log.String(), "canary")
}

func TestMask(t *testing.T) {
	t.Parallel()
	h := http.Header{"Authorization": {"a"}, "X-Api-Key": {"b", "c"}, "Set-Cookie": {"d"}, "X-Auth-Token": {"e"}, "Content-Type": {"f"}}
	got := call.Mask(h)
	require.Equal(t, http.Header{
		"Authorization": {call.Masked}, "X-Api-Key": {call.Masked, call.Masked}, "Set-Cookie": {call.Masked},
		"X-Auth-Token": {call.Masked}, "Content-Type": {"f"},
	}, got)
	got["Content-Type"][0] = "changed"
	require.Equal(t, "f", h["Content-Type"][0], "the copy is deep")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := call.NewSender(call.Config{Timeout: -1, Concurrency: -1, RetryAfter: spec.RetryAfter{Cap: -1}})
	for _, want := range []string{"Destination is empty", "Resolve is nil", "Timeout is -1ns", "Concurrency is -1", "RetryAfter has a negative"} {
		require.ErrorContains(t, err, want)
	}
}

func TestFromSpec(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		_, _ = io.WriteString(w, user+" "+fmt.Sprint(len(password)))
	})
	s, err := spec.Parse("t.yaml", []byte("destination: crm\non: E\nbase_url: \"${env:URL}\"\nauth: { basic: { user: ebb, password: \"${file:/p}\" } }\nrequest: { url: /a }\nrevert: none\n"))
	require.NoError(t, err)
	sender, err := call.NewSender(call.FromSpec(s, spec.Lookup{
		Env:  func(string) (string, bool) { return server.URL, true },
		File: func(string) ([]byte, error) { return []byte("12345678\n"), nil },
	}))
	require.NoError(t, err)
	t.Cleanup(sender.Close)
	x := sender.Send(t.Context(), attempt("POST", "/a", ""))
	require.Equal(t, "ebb 8", string(x.Body), x.Err)
}

// TestConcurrent hammers one sender; the race detector does the rest.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	s := newSender(t, call.Config{Resolve: live(t, server.URL, "")})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for j := range 20 {
				body := fmt.Sprintf(`{"i":%d,"j":%d}`, i, j)
				x := s.Send(t.Context(), attempt("POST", "/a", body))
				if x.Class != call.Succeeded || string(x.Body) != body {
					t.Errorf("%s: %s %s", x.Class, x.Body, x.Err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkSend(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer server.Close()
	s, err := spec.Parse("t.yaml", []byte("destination: crm\non: E\nbase_url: \""+server.URL+"\"\nrequest: { url: /a }\nrevert: none\n"))
	require.NoError(b, err)
	sender, err := call.NewSender(call.FromSpec(s, spec.OSLookup()))
	require.NoError(b, err)
	defer sender.Close()
	b.ReportAllocs()
	for b.Loop() {
		if x := sender.Send(b.Context(), attempt("POST", "/a", `{}`)); x.Class != call.Succeeded {
			b.Fatal(x.Err)
		}
	}
}
