package sim

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRepeatIsReplayedAlsoAfterRestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.post(t, "/api/billing", "k", "7", billingBody)
	refused := b.post(t, "/api/billing/none/refund", "u", "7", "")
	require.Equal(t, 404, refused.status)
	require.Empty(t, first.header.Get("Idempotent-Replayed"))
	b.clock.advance(time.Hour)
	check := func(b *testBundle) {
		again := b.post(t, "/api/billing", "k", "7", billingBody)
		require.Equal(t, first.status, again.status)
		require.Equal(t, first.body, again.body)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.Equal(t, refused.body, b.post(t, "/api/billing/none/refund", "u", "7", "").body)

		other := b.post(t, "/api/billing", "k", "7", `{"amount":1}`)
		require.Equal(t, 422, other.status)
		require.Equal(t, "idempotency_key_reused", other.at(t, "code"))
		require.Len(t, b.effects(t), 1)
	}
	check(b)
	require.NoError(t, b.sim.Close())
	b = reopen(t, b.path)
	check(b)

	calls := b.calls(t, Filter{Key: "k", Direction: Do})
	require.Len(t, calls, 5)
	require.Equal(t, 5, calls[4].Attempt, "attempts are counted over the restart")
	require.True(t, calls[1].Reply.Replayed)
	require.EqualValues(t, 1, calls[0].Reply.Effect)
}

func TestKeysBelongToADestination(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.charge(t, "same", "1")
	require.Equal(t, 200, b.post(t, "/api/inventory/reserve", "same", "1", "{}").status)
	require.Len(t, b.effects(t), 2)
}

func TestConcurrentCallsUnderOneKeyHaveOneEffect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const keys, callers = 10, 12
	replies := make([][]testReply, keys)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for k := range keys {
		for range callers {
			wg.Go(func() {
				r, err := b.try(http.MethodPost, "/api/billing", fmt.Sprint("k", k), fmt.Sprint(k), billingBody)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				replies[k] = append(replies[k], r)
				mu.Unlock()
			})
		}
	}
	wg.Wait()
	require.Len(t, b.effects(t), keys)
	require.Empty(t, Check(b.effects(t)))
	for _, rs := range replies {
		body := ""
		for _, r := range rs {
			if r.status == 409 {
				require.Equal(t, "in_progress", r.at(t, "code"))
				continue
			}
			require.Equal(t, 200, r.status)
			if body == "" {
				body = r.body
			}
			require.Equal(t, body, r.body)
		}
		require.NotEmpty(t, body)
	}
}

func TestSecondCallDuringTheFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Destination: Billing, Attempt: 1, Action: Hang, At: HangDuring, Duration: Duration(time.Hour)})
	done := make(chan error, 1)
	go func() {
		_, err := b.try(http.MethodPost, "/api/billing", "k", "7", billingBody)
		done <- err
	}()
	until(t, "the first call is in flight", func() bool { return b.sim.Stats().InFlight == 1 })
	r := b.post(t, "/api/billing", "k", "7", billingBody)
	require.Equal(t, 409, r.status)
	require.Equal(t, "in_progress", r.at(t, "code"))
	require.Equal(t, 422, b.post(t, "/api/billing", "k", "7", `{"amount":1}`).status)
	require.Equal(t, "in_progress", b.call(t, "GET", "/api/billing/by-key/k", "", "", "").at(t, "status"))
	require.NoError(t, b.sim.Close())
	require.Error(t, <-done, "an interrupted call is cut")
	require.Empty(t, b.sim.Effects())
}

func TestModes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode              Idempotency
		success, refusal  bool // replayed
		afterHour, effect int
	}{
		{IdempotencyOn, true, true, 1, 1},
		{IdempotencySuccessOnly, true, false, 1, 1},
		{IdempotencyTTL(30 * time.Minute), true, true, 2, 1},
		{IdempotencyOff, false, false, 3, 2},
	} {
		t.Run(tt.mode.String(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(c *Config) {
				c.Settings.Idempotency = map[string]Idempotency{"*": tt.mode}
			})
			replayed := func(path string) bool {
				b.post(t, path, path, "7", billingBody)
				return b.post(t, path, path, "7", billingBody).header.Get("Idempotent-Replayed") != ""
			}
			require.Equal(t, tt.success, replayed("/api/billing"))
			require.Equal(t, tt.refusal, replayed("/api/billing/x/refund"))
			require.Len(t, b.effects(t), tt.effect)
			b.clock.advance(time.Hour)
			b.post(t, "/api/billing", "/api/billing", "7", billingBody)
			require.Len(t, b.effects(t), tt.afterHour)
		})
	}
}

func TestNotProcessedIsNotRemembered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t,
		Fault{Action: Unavailable, Attempt: 1, RetryAfter: 3},
		Fault{Action: ReplyWith, Attempt: 2, Status: 429, Header: http.Header{"retry-after": {"9"}}, Body: []byte(`{"slow":"down"}`)},
		Fault{Action: ReplyWith, Attempt: 3, Status: 422},
	)
	r := b.post(t, "/api/billing", "k", "7", billingBody)
	require.Equal(t, 503, r.status)
	require.Equal(t, "3", r.header.Get("Retry-After"))
	r = b.post(t, "/api/billing", "k", "7", billingBody)
	require.Equal(t, 429, r.status)
	require.Equal(t, "9", r.header.Get("Retry-After"))
	require.Equal(t, `{"slow":"down"}`, r.body)
	require.Equal(t, 422, b.post(t, "/api/billing", "k", "7", billingBody).status)
	require.Empty(t, b.effects(t))
	b.charge(t, "k", "7")
	require.Len(t, b.effects(t), 1)
}

func TestLookup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	get := func(area, key string) testReply { return b.call(t, "GET", "/api/"+area+"/by-key/"+key, "", "", "") }
	for _, area := range []string{
		"inventory", "fraud", "shipping", "domestic-shipping", "international-shipping",
		"billing", "high-value-processing", "notifications",
	} {
		r := get(area, "none")
		require.Equal(t, 404, r.status, area)
		require.Equal(t, "not_found", r.at(t, "status"))
	}

	key := "019b:billing:do"
	first := b.post(t, "/api/billing", key, "7", billingBody)
	r := get("billing", key)
	require.Equal(t, 200, r.status)
	require.Equal(t, "done", r.at(t, "status"))
	require.Equal(t, first.at(t, "transaction", "id"), r.at(t, "transaction", "id"))
	require.Equal(t, "12345678.90", r.at(t, "transaction", "amount"))
	require.Equal(t, first.body, r.at(t, "reply"))

	id := first.at(t, "transaction", "id")
	require.Equal(t, 200, b.post(t, "/api/billing/"+id+"/refund", "019b:billing:undo", "7", "").status)
	require.Equal(t, "undone", get("billing", key).at(t, "status"))
	require.Equal(t, "done", get("billing", "019b:billing:undo").at(t, "status"))

	b.post(t, "/api/billing/none/refund", "bad", "7", "")
	require.Equal(t, "refused", get("billing", "bad").at(t, "status"))
	require.Equal(t, "404", get("billing", "bad").at(t, "httpStatus"))

	require.NoError(t, b.sim.Close())
	b = reopen(t, b.path)
	require.Equal(t, "undone", get("billing", key).at(t, "status"))
	require.Len(t, b.effects(t), 2)
}
