package sim

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLose(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Destination: Billing, Direction: Do, Attempt: 1, Action: Lose})
	_, err := b.try(http.MethodPost, "/api/billing", "k", "7", billingBody)
	require.Error(t, err)
	require.Equal(t, []Kind{Charge}, kinds(b.effects(t)))
	require.Zero(t, b.calls(t, Filter{})[0].Reply.Status)
	require.Contains(t, b.calls(t, Filter{})[0].Reply.Fault, "lose")

	r := b.post(t, "/api/billing", "k", "7", billingBody)
	require.Equal(t, "true", r.header.Get("Idempotent-Replayed"), "the repeat gets the answer that was lost")
	require.Len(t, b.effects(t), 1)
}

func TestReset(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Aggregate: "7", Next: 1, Action: Reset})
	require.Equal(t, 200, b.post(t, "/api/billing", "", "8", billingBody).status)
	_, err := b.try(http.MethodPost, "/api/billing", "k", "7", billingBody)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	b.charge(t, "k", "7")
	require.Len(t, b.effects(t), 2)
}

func TestHangUntilTheClientGivesUp(t *testing.T) {
	t.Parallel()
	for at, effectBefore := range map[string]bool{HangBefore: false, HangDuring: false, HangAfter: true} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.faults(t, Fault{Destination: Billing, Attempt: 1, Action: Hang, At: at})
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/api/billing", body(billingBody))
			require.NoError(t, err)
			req.Header.Set("Idempotency-Key", "k")
			req.Header.Set("X-Aggregate-Id", "7")
			ended := make(chan error, 1)
			go func() {
				resp, err := b.http.Do(req)
				if err == nil {
					err = resp.Body.Close()
				}
				ended <- err
			}()
			if effectBefore {
				until(t, "the charge", func() bool { return len(b.sim.Effects()) == 1 })
			} else {
				until(t, "the call", func() bool { return b.sim.Stats().Calls == 1 })
				require.Empty(t, b.sim.Effects())
			}
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			until(t, "the effect lands though nobody waits, and the key is free", func() bool {
				return len(b.sim.Effects()) == 1 && b.sim.Stats().InFlight == 0
			})
			r := b.post(t, "/api/billing", "k", "7", billingBody)
			require.Equal(t, 200, r.status)
			require.Len(t, b.effects(t), 1)
		})
	}
}

func TestHangForATimeThenReplies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Action: Hang, At: HangAfter, Duration: Duration(time.Millisecond)})
	b.charge(t, "k", "7")
}

func TestHangBeforeIsOvertaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Attempt: 1, Action: Hang, At: HangBefore})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/api/billing", body(billingBody))
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", "k")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := b.http.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	until(t, "the first call", func() bool { return b.sim.Stats().Calls == 1 })
	require.Equal(t, 404, b.call(t, "GET", "/api/billing/by-key/k", "", "", "").status)
	require.Equal(t, 200, b.post(t, "/api/billing", "k", "", billingBody).status)
	cancel()
	<-ended
	until(t, "the late call has ended", func() bool {
		calls := b.calls(t, Filter{Key: "k", Direction: Do})
		return calls[0].Reply != nil && calls[0].Reply.Replayed
	})
	require.Len(t, b.effects(t), 1)
}

func TestStallBody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Attempt: 1, Action: StallBody, Duration: Duration(time.Millisecond)})
	r, err := b.try(http.MethodPost, "/api/billing", "k", "7", billingBody)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, 200, r.status)
	require.NotEmpty(t, r.body)
	whole := b.post(t, "/api/billing", "k", "7", billingBody)
	require.Equal(t, whole.body[:len(whole.body)/2], r.body)
	require.Len(t, b.effects(t), 1)
}

func TestFaultsStrikeByConditionCountAndChance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t,
		Fault{ID: "undo", Destination: Billing, Direction: Undo, Action: Unavailable},
		Fault{ID: "two", Destination: Inventory, Next: 2, Action: Unavailable},
		Fault{ID: "half", Destination: Shipping, Probability: 5000, Seed: 3, Action: Unavailable},
		Fault{ID: "look", Direction: Lookup, Action: Unavailable},
	)
	b.charge(t, "k", "7")
	require.Equal(t, 503, b.post(t, "/api/billing/x/refund", "", "7", "").status)
	require.Equal(t, 503, b.call(t, "GET", "/api/billing/by-key/k", "", "", "").status)
	codes := func(path string, n int) (ok int) {
		for range n {
			if b.post(t, path, "", "7", "{}").status == 200 {
				ok++
			}
		}
		return ok
	}
	require.Equal(t, 3, codes("/api/inventory/reserve", 5))
	ok := codes("/api/domestic-shipping", 40)
	require.Greater(t, ok, 8)
	require.Less(t, ok, 32)

	faults, err := b.client.Faults(t.Context())
	require.NoError(t, err)
	require.Len(t, faults, 3, "the counted one has ended")
	require.Equal(t, 40-ok, faults[1].Struck)
	require.NoError(t, b.client.RemoveFault(t.Context(), "half"))
	require.Equal(t, 5, codes("/api/domestic-shipping", 5))
	require.NoError(t, b.client.ClearFaults(t.Context()))
	require.Equal(t, 404, b.post(t, "/api/billing/x/refund", "", "7", "").status)
}

func TestFaultEndsByTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Action: ReplyWith, Status: 401, For: Duration(time.Minute)})
	require.Equal(t, 401, b.post(t, "/api/billing", "", "7", billingBody).status)
	b.clock.advance(time.Minute)
	require.Equal(t, 200, b.post(t, "/api/billing", "", "7", billingBody).status)
}

func TestFaultAPIRefusesMistakes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, f := range map[string]Fault{
		"no action":        {},
		"bad action":       {Action: "explode"},
		"bad destination":  {Action: Lose, Destination: "biling"},
		"bad direction":    {Action: Lose, Direction: "sideways"},
		"bad at":           {Action: Hang, At: "sometime"},
		"no status":        {Action: ReplyWith},
		"negative":         {Action: Lose, Next: -1},
		"mode elsewhere":   {Action: Lose, Mode: "closed"},
		"refuse who":       {Action: RefuseConnection},
		"refuse one order": {Action: RefuseConnection, Destination: Billing, Aggregate: "7"},
		"refuse how":       {Action: RefuseConnection, Destination: Billing, Mode: "rudely"},
		"closed counting":  {Action: RefuseConnection, Destination: Billing, Mode: "closed", Next: 1},
		"closed, shared":   {Action: RefuseConnection, Destination: Billing, Mode: "closed"},
	} {
		_, err := b.client.AddFaults(t.Context(), f)
		var api *APIError
		require.ErrorAs(t, err, &api, name)
		require.Equal(t, 422, api.Status, name)
	}
	_, err := b.client.AddFaults(t.Context(), Fault{ID: "a", Action: Lose}, Fault{ID: "a", Action: Lose})
	var api *APIError
	require.ErrorAs(t, err, &api)
	require.Equal(t, 409, api.Status)
	require.Error(t, b.client.RemoveFault(t.Context(), "a"))
	_, err = Open(Config{Faults: []Fault{{Action: "explode"}}, Settings: Settings{Rates: map[string]Rate{"x": 1}}})
	require.ErrorContains(t, err, "explode")
	require.ErrorContains(t, err, "ledger path")
	require.ErrorContains(t, err, `unknown key "x"`)
}

func TestRefuseConnectionOnTheSharedListener(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Destination: Billing, Action: RefuseConnection, Next: 1})
	_, err := b.try(http.MethodPost, "/api/billing", "k", "7", billingBody)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	b.charge(t, "k", "7")
}

func TestRefuseConnectionOnAListenerOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Now = time.Now })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- b.sim.ServeDestination(ctx, Billing, ln) }()
	until(t, "the listener is known", func() bool { return b.sim.doors.has(Billing) })
	own := *b
	own.url = "http://" + ln.Addr().String()
	attempt := func(key string) error {
		_, err := own.try(http.MethodPost, "/api/billing", key, key, billingBody)
		return err
	}
	require.NoError(t, attempt("1"), "leaves a connection that is kept alive")

	b.faults(t, Fault{Destination: Billing, Action: RefuseConnection, Mode: RefuseByClosing})
	until(t, "the connect is refused", func() bool { return errors.Is(attempt("2"), syscall.ECONNREFUSED) })
	require.NoError(t, b.client.Healthy(t.Context()), "the shared listener stays open")
	require.NoError(t, b.client.ClearFaults(t.Context()))
	until(t, "it listens again", func() bool { return attempt("4") == nil })

	b.faults(t, Fault{Destination: Billing, Action: RefuseConnection})
	require.Error(t, attempt("5"))
	require.NoError(t, b.client.ClearFaults(t.Context()))
	until(t, "it accepts again", func() bool { return attempt("6") == nil })

	b.faults(t, Fault{Destination: Billing, Action: RefuseConnection, Mode: RefuseByClosing, For: Duration(20 * time.Millisecond)})
	until(t, "the fault ends by its time", func() bool { return attempt("7") == nil })

	for _, c := range b.calls(t, Filter{Aggregate: "5"}) {
		require.Fail(t, "a refused connection brought a call", "%v", c)
	}
	cancel()
	require.NoError(t, <-served)
	require.Error(t, b.sim.ServeDestination(t.Context(), "nobody", closedListener(t)))
}

func TestServeEndsWithItsContextThoughCallsHang(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(t, Fault{Action: Hang, Duration: Duration(time.Hour)})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- b.sim.Serve(ctx, ln) }()
	own := *b
	own.url = "http://" + ln.Addr().String()
	hung := make(chan error, 1)
	go func() {
		_, err := own.try(http.MethodPost, "/api/billing", "k", "7", billingBody)
		hung <- err
	}()
	until(t, "the call", func() bool { return b.sim.Stats().Calls == 1 })
	cancel()
	require.NoError(t, <-served)
	require.Error(t, <-hung)
}

func closedListener(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return ln
}
