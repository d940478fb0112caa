package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim/internal/appendlog"
)

// A simulator is killed while many calls run. Whatever it had answered must be
// in the ledger of the next one, and a repeat must get the same bytes.
func TestKillKeepsEveryAnsweredEffect(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	answered := killWhileCharging(t, path)

	b := reopen(t, path)
	byKey := map[string]Effect{}
	for _, e := range b.effects(t) {
		byKey[e.Key] = e
	}
	require.Empty(t, Check(b.effects(t)))
	for key, r := range answered {
		require.Equal(t, r.at(t, "transaction", "id"), byKey[key].Thing, key)
		again := b.post(t, "/api/billing", key, strings.TrimPrefix(key, "k"), billingBody)
		require.Equal(t, r.body, again.body)
	}
	require.Len(t, b.effects(t), len(byKey), "no repeat had an effect")
}

func killWhileCharging(t *testing.T, path string) map[string]testReply {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childLedger+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	addr, err := firstLine(out)
	require.NoError(t, err)

	b := &testBundle{url: "http://" + addr, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	defer b.http.CloseIdleConnections()
	answered := map[string]testReply{}
	enough := make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; ; i += 8 {
				key := fmt.Sprint("k", i)
				r, err := b.try(http.MethodPost, "/api/billing", key, fmt.Sprint(i), billingBody)
				if err != nil || r.status != 200 {
					return
				}
				mu.Lock()
				answered[key] = r
				if len(answered) == 100 {
					once.Do(func() { close(enough) })
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	require.NoError(t, child.Process.Kill())
	wg.Wait()
	require.Error(t, child.Wait())
	return answered
}

func TestTornRecordIsAsIfTheCallHadNotEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.charge(t, "a", "1")
	b.charge(t, "b", "2")
	require.NoError(t, b.sim.Close())
	data, err := os.ReadFile(b.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.path, data[:len(data)-20], 0o600))

	b = reopen(t, b.path)
	require.Len(t, b.effects(t), 1)
	calls := b.calls(t, Filter{})
	require.Len(t, calls, 2)
	require.Nil(t, calls[1].Reply)
	require.Equal(t, 404, b.call(t, "GET", "/api/billing/by-key/b", "", "", "").status)
	require.Equal(t, "TXN-2-2", b.charge(t, "b", "2"))
}

func TestDamagedLedgerIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	log, err := appendlog.Open(path, true, nil)
	require.NoError(t, err)
	_, err = log.Append([]byte(`{"done":{"call":5,"reply":{"status":200}}}`))
	require.NoError(t, err)
	require.NoError(t, log.Close())
	_, err = Open(Config{LedgerPath: path})
	require.ErrorContains(t, err, "unknown call 5")

	b := setup(t)
	_, err = Open(Config{LedgerPath: b.path})
	var locked *appendlog.LockedError
	require.ErrorAs(t, err, &locked)
}

func TestBrokenLedgerRefusesCalls(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.client.Healthy(t.Context()))
	require.NoError(t, b.sim.log.Close())
	r := b.post(t, "/api/billing", "k", "7", billingBody)
	require.Equal(t, 500, r.status)
	require.Equal(t, "ledger_unavailable", r.at(t, "code"))
	require.Empty(t, b.sim.Effects())
	require.Error(t, b.client.Healthy(t.Context()))
}

func TestCallsAreKeptRaw(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raw := "{\"amount\":1.50,\"note\":\"<&>\u2028\"}"
	b.post(t, "/api/billing?x=%2F&x=2", "k", "7", raw)
	b.post(t, "/api/billing", "", "7", "\xff\x00binary")
	check := func(b *testBundle) {
		calls := b.calls(t, Filter{Aggregate: "7"})
		require.Len(t, calls, 2)
		require.Equal(t, "/api/billing?x=%2F&x=2", calls[0].Target)
		require.Equal(t, raw, string(calls[0].Body))
		require.Equal(t, []string{"k"}, calls[0].Header["Idempotency-Key"])
		require.Equal(t, 200, calls[0].Reply.Status)
		require.Equal(t, "\xff\x00binary", string(calls[1].Body))
		require.Equal(t, 400, calls[1].Reply.Status)
	}
	check(b)
	require.NoError(t, b.sim.Close())
	check(reopen(t, b.path))
}

func TestLedgerQueries(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.NoSync = true })
	for i := range 25 {
		b.charge(t, fmt.Sprint("k", i), fmt.Sprint(i%5))
		b.post(t, "/api/inventory/reserve", "", fmt.Sprint(i), "{}")
	}
	effects, err := b.client.Effects(t.Context(), Filter{Destination: Billing, Aggregate: "3"})
	require.NoError(t, err)
	require.Len(t, effects, 5)
	effects, err = b.client.Effects(t.Context(), Filter{Since: 47})
	require.NoError(t, err)
	require.Len(t, effects, 3)
	require.Len(t, b.calls(t, Filter{Direction: Do, Limit: 7}), 7)
	require.Len(t, b.calls(t, Filter{Key: "k3"}), 1)
	require.Empty(t, b.calls(t, Filter{Since: 1000}))

	var seen []int64
	next := int64(0)
	for {
		var page effectPage
		b.get(t, fmt.Sprintf("/sim/effects?limit=20&since=%d", next), 200, &page)
		for _, e := range page.Effects {
			seen = append(seen, e.Seq)
		}
		if next = page.Next; next == 0 {
			break
		}
	}
	require.Len(t, seen, 50)
	var calls callPage
	b.get(t, "/sim/calls?limit=10", 200, &calls)
	require.Len(t, calls.Calls, 10)
	require.EqualValues(t, 10, calls.Next)

	var sums summaryPage
	b.get(t, "/sim/summary?limit=10", 200, &sums)
	require.Len(t, sums.Orders, 10)
	require.Equal(t, 25, sums.Total)
	require.Equal(t, 25, sums.Live)
	require.EqualValues(t, 10, sums.Next)
	all, err := b.client.Summary(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, all, 25)

	found, err := b.client.Check(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, found)
	var p problem
	b.get(t, "/sim/effects?agregate=3", 400, &p)
	b.get(t, "/sim/calls?since=-1", 400, &p)
	b.get(t, "/sim/summary?limit=x", 400, &p)
	b.get(t, "/sim/nothing", 404, nil)
	stats, err := b.client.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, 50, stats.Effects)
}

func (b *testBundle) get(t *testing.T, path string, status int, into any) {
	t.Helper()
	resp, err := b.http.Get(b.url + path)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, status, resp.StatusCode, path)
	if into != nil {
		require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
	}
}

func TestReadersStopEarly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.charge(t, "a", "1")
	b.charge(t, "b", "2")
	stop := fmt.Errorf("enough")
	n := 0
	err := b.client.EachCall(t.Context(), Filter{}, func(Call) error { n++; return stop })
	require.ErrorIs(t, err, stop)
	require.Equal(t, 1, n)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.client.Effects(ctx, Filter{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestResetIsForTestsOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.charge(t, "k", "7")
	b.faults(t, Fault{Attempt: 1, Destination: Shipping, Action: Hang})
	hung := make(chan error, 1)
	go func() {
		_, err := b.try(http.MethodPost, "/api/domestic-shipping", "s", "7", "{}")
		hung <- err
	}()
	until(t, "a call hangs", func() bool { return b.sim.Stats().Calls == 2 })
	require.NoError(t, b.client.Reset(t.Context()))
	require.Error(t, <-hung)
	require.Empty(t, b.effects(t))
	require.Empty(t, b.calls(t, Filter{}))
	require.Equal(t, "TXN-7-1", b.charge(t, "k", "7"))

	b = setup(t, func(c *Config) { c.AllowReset = false })
	var api *APIError
	require.ErrorAs(t, b.client.Reset(t.Context()), &api)
	require.Equal(t, 403, api.Status)
}

func TestAdminInputIsStrict(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct {
		contentType, body string
		status            int
	}{
		{"text/plain", `{"faults":[]}`, 415},
		{"application/json", `{"fault":[]}`, 400},
		{"application/json", `{"faults":[]} {}`, 400},
		{"application/json", `{"faults":[{"action":"hang","duration":"soon"}]}`, 400},
		{"application/json; charset=utf-8", `{"faults":[{"action":"hang","duration":"1s"}]}`, 200},
	} {
		resp, err := b.http.Post(b.url+"/sim/faults", tt.contentType, strings.NewReader(tt.body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tt.status, resp.StatusCode, tt.body)
	}
}

func TestClosedSimulator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.sim.Close())
	require.NoError(t, b.sim.Close())
	require.ErrorIs(t, b.sim.Err(), ErrClosed)
	require.Equal(t, 500, b.post(t, "/api/billing", "k", "7", billingBody).status)
}

func FuzzRawBody(f *testing.F) {
	f.Add([]byte(`{"a":1}`))
	f.Add([]byte("\xff\x00\u2028"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		data, err := json.Marshal(RawBody(in))
		require.NoError(t, err)
		var out RawBody
		require.NoError(t, json.Unmarshal(data, &out))
		require.Equal(t, string(in), string(out))
	})
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-1.50", "1e64", "1e-64", "12345678.90", "1E+5", "0x1", "1_0", "1/2", "", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseDecimal(text)
		if err != nil {
			return
		}
		require.True(t, json.Valid([]byte(text)), "%q is written into replies as it is", text)
		again, err := parseDecimal(r.FloatString(placesOf(text)))
		if err == nil { // the expanded form may be too long to be an amount
			require.Zero(t, r.Cmp(again))
		}
	})
}
