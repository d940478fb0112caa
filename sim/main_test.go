package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childLedger makes the test binary a simulator that waits to be killed.
const childLedger = "EBB_SIM_TEST_LEDGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(childLedger); path != "" {
		runChild(path)
	}
	goleak.VerifyTestMain(m)
}

func runChild(path string) {
	s, err := Open(Config{LedgerPath: path, Settings: Quiet()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(ln.Addr())
	_ = http.Serve(ln, s.Handler())
	os.Exit(0)
}

type testBundle struct {
	sim    *Sim
	url    string
	path   string
	client *Client
	http   *http.Client
	clock  *testClock
}

type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// setup starts a simulator without random failures; change adapts its configuration.
func setup(t *testing.T, change ...func(*Config)) *testBundle {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "sim", "ledger"), change...)
}

func reopen(t *testing.T, path string, change ...func(*Config)) *testBundle {
	t.Helper()
	clock := &testClock{now: time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)}
	cfg := Config{LedgerPath: path, Settings: Quiet(), Now: clock.Now, AllowReset: true}
	for _, c := range change {
		c(&cfg)
	}
	s, err := Open(cfg)
	require.NoError(t, err)
	srv := httptest.NewServer(s.Handler())
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b := &testBundle{sim: s, url: srv.URL, path: path, http: &http.Client{Transport: transport}, clock: clock}
	b.client = NewClient(srv.URL, b.http)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, s.Close())
		srv.Close()
	})
	return b
}

type testReply struct {
	status int
	header http.Header
	body   string
}

// at reads a member of the reply by its path of names, as it was written.
func (r testReply) at(t testing.TB, path ...string) string {
	t.Helper()
	raw := json.RawMessage(r.body)
	for _, name := range path {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &m), "reply %s", r.body)
		require.Contains(t, m, name, "reply %s", r.body)
		raw = m[name]
	}
	return strings.Trim(string(raw), `"`)
}

// call sends a request to a destination under a key for an order.
func (b *testBundle) call(t testing.TB, method, path, key, order, body string) testReply {
	t.Helper()
	r, err := b.try(method, path, key, order, body)
	require.NoError(t, err)
	return r
}

func (b *testBundle) try(method, path, key, order, body string) (testReply, error) {
	req, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
	if err != nil {
		return testReply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		// As our own callers send it: not in canonical form in the map.
		req.Header["Idempotency-key"] = []string{key}
	}
	if order != "" {
		req.Header.Set("X-Aggregate-Id", order)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return testReply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return testReply{resp.StatusCode, resp.Header, string(data)}, err
}

func (b *testBundle) post(t testing.TB, path, key, order, body string) testReply {
	t.Helper()
	return b.call(t, http.MethodPost, path, key, order, body)
}

const billingBody = `{"orderId":7,"amount":12345678.90,"currency":"USD"}`

func (b *testBundle) charge(t testing.TB, key, order string) (id string) {
	t.Helper()
	r := b.post(t, "/api/billing", key, order, billingBody)
	require.Equal(t, 200, r.status, r.body)
	return r.at(t, "transaction", "id")
}

func (b *testBundle) effects(t testing.TB) []Effect {
	t.Helper()
	e, err := b.client.Effects(t.Context(), Filter{})
	require.NoError(t, err)
	return e
}

func (b *testBundle) calls(t testing.TB, f Filter) []Call {
	t.Helper()
	c, err := b.client.Calls(t.Context(), f)
	require.NoError(t, err)
	return c
}

func (b *testBundle) faults(t testing.TB, faults ...Fault) {
	t.Helper()
	_, err := b.client.SetFaults(t.Context(), faults...)
	require.NoError(t, err)
}

func kinds(effects []Effect) []Kind {
	out := []Kind{}
	for _, e := range effects {
		out = append(out, e.Kind)
	}
	return out
}

// until polls a condition that no channel announces.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, time.Millisecond, what)
}

func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	return strings.TrimSpace(line), err
}

func compact(t testing.TB, v any) string {
	t.Helper()
	var buf bytes.Buffer
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Compact(&buf, data))
	return buf.String()
}

func body(text string) io.Reader { return strings.NewReader(text) }
