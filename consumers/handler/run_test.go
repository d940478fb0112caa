package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers/handler"
	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

func TestASuccessIsStoredWithItsReplyAndItsUndo(t *testing.T) {
	t.Parallel()
	b, f := setup(t), &fake{}
	f.prepare = func(s handler.Step) (handler.Request, error) {
		require.Equal(t, stream.EventID(7), s.EventID)
		require.Equal(t, "OrderCreated", s.EventType)
		require.Equal(t, "crm", s.Destination)
		require.Equal(t, "order", s.AggregateType)
		var event struct{ TotalAmount json.Number }
		require.NoError(t, json.Unmarshal(s.Event, &event))
		require.Equal(t, "10.50", event.TotalAmount.String())
		return handler.Request{Body: []byte("deal " + s.AggregateID)}, nil
	}
	run := b.start(crm(f))
	b.kafka.Created(7)
	require.Equal(t, "pinned", b.await(7, "do", "SUCCEEDED").Revert)
	b.awaitSaga(7, saga.Completed)

	sent := f.sent()
	require.Len(t, sent, 1)
	require.Equal(t, "deal 7", string(sent[0].Body))
	require.Equal(t, stream.EventID(7)+":crm:do", sent[0].Key)
	require.Equal(t, 1, sent[0].Attempt)
	require.Equal(t, 1, sent[0].Version)
	var reply, undo []byte
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT reply_body FROM ebb.calls WHERE settled").Scan(&reply))
	require.JSONEq(t, `{"id":"d-7"}`, string(reply))
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT content FROM ebb.requests WHERE direction = 'undo'").Scan(&undo))
	require.Equal(t, "drop d-7", string(undo))
	require.NoError(t, run.end())
}

// The saga is refused by its last destination; what the others did is undone in reverse order, with the bytes of their successes.
func TestARefusalUndoesInReverseOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var mu sync.Mutex
	var undone []string
	undo := func(_ context.Context, r handler.Request, _ int) (handler.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		undone = append(undone, r.Destination+" "+string(r.Body)+" "+r.Key)
		return handler.Result{}, nil
	}
	first := crm(&fake{undo: undo})
	second := crm(&fake{undo: undo})
	second.Name, second.After = "erp", []string{"crm"}
	second.Handler.(*fake).prepare = func(s handler.Step) (handler.Request, error) {
		return handler.Request{Body: append([]byte("after "), s.Replies["crm"].Body...)}, nil
	}
	last := crm(&fake{send: func(context.Context, handler.Request, int) (handler.Result, error) {
		return handler.Result{}, handler.Refuse("no such customer")
	}})
	last.Name, last.After = "mail", []string{"erp"}
	for _, d := range []handler.Destination{first, second, last} {
		b.start(d)
		b.registered(d.Name)
	}
	b.kafka.Created(1)
	require.Contains(t, b.awaitOf("mail", 1, "do", "REFUSED").Reason, "no such customer")
	b.unwind(1)
	b.awaitSaga(1, saga.Compensated)
	key := stream.EventID(1)
	require.Equal(t, []string{"erp drop d-1 " + key + ":erp:undo", "crm drop d-1 " + key + ":crm:undo"}, undone)
	require.JSONEq(t, `{"id":"d-1"}`, string(bytes.TrimPrefix(second.Handler.(*fake).sent()[0].Body, []byte("after "))))
}

func TestEndsOfSend(t *testing.T) {
	t.Parallel()
	once := func(err error) func(context.Context, handler.Request, int) (handler.Result, error) {
		return func(_ context.Context, r handler.Request, nth int) (handler.Result, error) {
			if nth == 1 {
				return handler.Result{}, err
			}
			return done(r), nil
		}
	}
	for name, c := range map[string]struct {
		send   func(context.Context, handler.Request, int) (handler.Result, error)
		change func(*handler.Destination)
		state  string
		reason string
		sends  int
		// attempt is what was charged.
		attempt int
	}{
		"asked to come back":    {send: once(handler.RetryAfter(10 * time.Millisecond)), state: "SUCCEEDED", sends: 2, attempt: 2},
		"unknown":               {send: once(handler.Unknown(errors.New("cut"))), state: "SUCCEEDED", sends: 2, attempt: 2},
		"an error like any":     {send: once(io.ErrUnexpectedEOF), state: "SUCCEEDED", sends: 2, attempt: 2},
		"not sent":              {send: once(handler.NotSent(errors.New("connection refused"))), state: "SUCCEEDED", sends: 2, attempt: 1},
		"misconfigured":         {send: once(handler.Misconfigured(errors.New("401"))), state: "SUCCEEDED", sends: 2, attempt: 1},
		"skipped":               {send: once(handler.Skip("gift cards are not deals")), state: "SKIPPED", reason: "gift cards", sends: 1, attempt: 1},
		"parked":                {send: once(handler.Park("which of the two?")), state: "PARKED", reason: "which of the two?", sends: 1, attempt: 0},
		"pending, not askable":  {send: once(handler.Pending("queued")), state: "PARKED", reason: "no lookup", sends: 1, attempt: 1},
		"refused":               {send: once(handler.Refuse("no")), state: "REFUSED", reason: "no", sends: 1, attempt: 1},
		"not found is not ours": {send: once(handler.NotFound("?")), state: "SUCCEEDED", sends: 2, attempt: 2},
		"unknown, not to be repeated": {send: once(errors.New("cut")), state: "PARKED", reason: "cut", sends: 1, attempt: 1,
			change: func(d *handler.Destination) { d.Idempotency = handler.NotIdempotent }},
		"a refusal is ignored": {send: once(handler.Refuse("no")), state: "REFUSED", reason: "no", sends: 1, attempt: 1,
			change: func(d *handler.Destination) { d.OnRefused = handler.RefusalIgnored }},
		"a panic": {state: "SUCCEEDED", sends: 2, attempt: 2, send: func(_ context.Context, r handler.Request, nth int) (handler.Result, error) {
			if nth == 1 {
				panic("out of range")
			}
			return done(r), nil
		}},
		"too large an undo": {state: "SUCCEEDED", sends: 1, attempt: 1, send: func(context.Context, handler.Request, int) (handler.Result, error) {
			return handler.Result{Undo: make([]byte, 300<<10)}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, f := setup(t), &fake{send: c.send}
			d := crm(f)
			if c.change != nil {
				c.change(&d)
			}
			run := b.start(d)
			b.kafka.Created(1)
			got := b.await(1, "do", c.state)
			require.Contains(t, got.Reason, c.reason)
			require.Equal(t, c.attempt, got.Attempt)
			sent := f.sent()
			require.Len(t, sent, c.sends)
			for _, r := range sent {
				require.Equal(t, sent[0].Body, r.Body)
				require.Equal(t, sent[0].Key, r.Key)
			}
			if name == "a panic" {
				require.Contains(t, b.logs.String(), "out of range")
				require.Contains(t, b.logs.String(), "run_test.go") // its stack
			}
			require.NoError(t, run.end())
		})
	}
}

func TestEndsOfPrepare(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	for name, c := range map[string]struct {
		prepare func(handler.Step) (handler.Request, error)
		state   string
		reason  string
	}{
		"skipped":       {func(handler.Step) (handler.Request, error) { return handler.Request{}, handler.Skip("nothing to do") }, "SKIPPED", "nothing to do"},
		"refused":       {func(handler.Step) (handler.Request, error) { return handler.Request{}, handler.Refuse("not to us") }, "REFUSED", "not to us"},
		"parked":        {func(handler.Step) (handler.Request, error) { return handler.Request{}, handler.Park("ambiguous") }, "PARKED", "ambiguous"},
		"other error":   {func(handler.Step) (handler.Request, error) { return handler.Request{}, io.EOF }, "PARKED", "EOF"},
		"panic":         {func(handler.Step) (handler.Request, error) { panic("nil map") }, "PARKED", "panicked"},
		"hang":          {func(handler.Step) (handler.Request, error) { <-never; return handler.Request{}, nil }, "PARKED", "did not return"},
		"empty request": {func(handler.Step) (handler.Request, error) { return handler.Request{}, nil }, "SUCCEEDED", ""},
		"too large": {func(handler.Step) (handler.Request, error) {
			return handler.Request{Body: make([]byte, handler.MaxRequest+1)}, nil
		}, "PARKED", "the limit is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.start(crm(&fake{prepare: c.prepare}))
			b.kafka.Created(1)
			require.Contains(t, b.await(1, "do", c.state).Reason, c.reason)
		})
	}
}

// What may have happened is looked up, and not repeated before the answer is known.
func TestLookupTellsWhatBecameOfARequest(t *testing.T) {
	t.Parallel()
	b, f := setup(t), &fake{}
	f.send = func(_ context.Context, _ handler.Request, _ int) (handler.Result, error) {
		return handler.Result{}, handler.Pending("queued")
	}
	var mu sync.Mutex
	lookups := 0
	h := asked{f, func(r handler.Request) (handler.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, "deal 1", string(r.Body))
		require.Equal(t, stream.EventID(1)+":crm:do", r.Key)
		require.True(t, r.MayHaveHappened)
		switch lookups++; lookups {
		case 1:
			return handler.Result{}, handler.Pending("still queued")
		case 2:
			return handler.Result{}, errors.New("cut")
		}
		return done(r), nil
	}}
	d := crm(h)
	d.Idempotency = handler.NotIdempotent
	b.start(d)
	b.kafka.Created(1)
	require.Equal(t, "pinned", b.await(1, "do", "SUCCEEDED").Revert)
	require.Len(t, f.sent(), 1)
	require.Equal(t, 3, lookups)
}

func TestWhatALookupDoesNotFindIsSentAgain(t *testing.T) {
	t.Parallel()
	b, f := setup(t), &fake{}
	f.send = func(_ context.Context, r handler.Request, nth int) (handler.Result, error) {
		if nth == 1 {
			return handler.Result{}, errors.New("cut")
		}
		return done(r), nil
	}
	d := crm(asked{f, func(handler.Request) (handler.Result, error) {
		return handler.Result{}, handler.NotFound("unknown key")
	}})
	d.Idempotency, d.Settle, d.Timeout = handler.NotIdempotent, time.Millisecond, 50*time.Millisecond
	b.start(d, func(c *handler.Config) { c.Margin = 50 * time.Millisecond })
	b.kafka.Created(1)
	b.await(1, "do", "SUCCEEDED")
	require.Len(t, f.sent(), 2)
}

// An undo that fails is tried again under its own key with the same bytes; one that is refused waits for a person.
func TestEndsOfUndo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   error
		state string
		undos int
	}{
		"unknown": {errors.New("cut"), "SUCCEEDED", 2},
		"later":   {handler.RetryAfter(time.Millisecond), "SUCCEEDED", 2},
		"pending": {handler.Pending("queued"), "SUCCEEDED", 2},
		"refused": {handler.Refuse("already shipped"), "PARKED", 1},
		"skip":    {handler.Skip("gone"), "PARKED", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			f := &fake{undo: func(_ context.Context, _ handler.Request, nth int) (handler.Result, error) {
				if nth == 1 {
					return handler.Result{}, c.end
				}
				return handler.Result{}, nil
			}}
			refuses := crm(&fake{send: func(context.Context, handler.Request, int) (handler.Result, error) {
				return handler.Result{}, handler.Refuse("no")
			}})
			refuses.Name, refuses.After = "mail", []string{"crm"}
			b.start(crm(f))
			b.registered("crm")
			b.start(refuses)
			b.registered("mail")
			b.kafka.Created(1)
			b.unwind(1)
			b.await(1, "undo", c.state)
			undone := f.undone()
			require.Len(t, undone, c.undos)
			for _, r := range undone {
				require.Equal(t, "drop d-1", string(r.Body))
				require.Equal(t, stream.EventID(1)+":crm:undo", r.Key)
			}
		})
	}
}

// A handler that does not end with its context: readiness fails, its step goes on without it, and the process stops in order.
func TestAHandlerThatHangsFailsReadinessAndItsStepMoves(t *testing.T) {
	t.Parallel()
	b, release := setup(t), make(chan struct{})
	f := &fake{send: func(_ context.Context, r handler.Request, nth int) (handler.Result, error) {
		if nth == 1 {
			<-release
		}
		return done(r), nil
	}}
	d := crm(f)
	d.Timeout = 50 * time.Millisecond
	run := b.start(d, func(c *handler.Config) {
		c.Margin, c.HTTP, c.Grace = 50*time.Millisecond, "127.0.0.1:0", 50*time.Millisecond
	})
	url := "http://" + <-run.addr + "/readyz"
	awaitStatus(t, url, http.StatusOK)
	b.kafka.Created(1)
	b.await(1, "do", "SUCCEEDED")
	require.Equal(t, f.sent()[0].Body, f.sent()[1].Body)
	require.True(t, f.sent()[1].MayHaveHappened)
	require.Contains(t, awaitStatus(t, url, http.StatusServiceUnavailable), "1 of 16 handlers of crm hang")

	close(release)
	awaitStatus(t, url, http.StatusOK)
	require.NoError(t, run.end())
}

func TestTheStopDoesNotWaitForAHandlerThatHangs(t *testing.T) {
	t.Parallel()
	b, release, calling := setup(t), make(chan struct{}), make(chan struct{}, 100)
	defer close(release)
	f := &fake{send: func(context.Context, handler.Request, int) (handler.Result, error) {
		calling <- struct{}{}
		<-release
		return handler.Result{}, nil
	}}
	run := b.start(crm(f), func(c *handler.Config) { c.Margin, c.Grace = 20*time.Millisecond, time.Second })
	b.kafka.Created(1)
	<-calling
	require.NoError(t, run.end())
	got := b.step(1, "crm", "do")
	require.Equal(t, "READY", got.State)
	require.True(t, got.Maybe)
}

func TestRunEndsWhenEveryPlaceHangs(t *testing.T) {
	t.Parallel()
	b, release := setup(t), make(chan struct{})
	defer close(release)
	d := crm(&fake{send: func(context.Context, handler.Request, int) (handler.Result, error) {
		<-release
		return handler.Result{}, nil
	}})
	d.Timeout, d.Concurrency = 50*time.Millisecond, 1
	run := b.start(d, func(c *handler.Config) { c.Margin, c.Grace = 50*time.Millisecond, 50*time.Millisecond })
	b.kafka.Created(1)
	var hung *handler.HungError
	require.ErrorAs(t, <-run.done, &hung)
	require.Equal(t, 1, hung.Places)
}

// A new version is registered when the program says so, and the same one only once, whatever applies destination files meanwhile.
func TestVersionsAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := crm(&fake{})
	for range 2 {
		run := b.start(d)
		b.registered("crm")
		require.NoError(t, run.end())
	}
	d.Timeout = time.Minute // is not part of what a step is pinned to
	require.NoError(t, b.start(d).endOnce(b, 1))
	d.Version = "2"
	require.NoError(t, b.start(d).endOnce(b, 2))

	_, err := b.store.Apply(t.Context(), []journal.Destination{{Name: "crm", EventTypes: []string{"OrderCreated"}}}, nil, journal.FromNow, false)
	require.ErrorIs(t, err, journal.ErrOtherKind)
	require.NoError(t, handler.Remove(t.Context(), b.config(), "crm", ""))
	_, err = b.store.Latest(t.Context(), "crm")
	require.ErrorIs(t, err, journal.ErrUnknownVersion)
	require.ErrorIs(t, handler.Remove(t.Context(), b.config(), "erp", ""), journal.ErrUnknownVersion)
}

// endOnce waits for the version to be registered, and stops.
func (r *running) endOnce(b *bundle, version int) error {
	testkit.Eventually(b.t, func() (bool, string) {
		v, err := b.store.VersionOf(context.Background(), "crm", version)
		return err == nil && v.Kind == journal.KindGo, "version is not registered"
	}, 0)
	return r.end()
}

// awaitStatus waits until the address answers with the status, and gives the body.
func awaitStatus(t *testing.T, url string, status int) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var body []byte
	testkit.Eventually(t, func() (bool, string) {
		resp, err := client.Get(url)
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		body, err = io.ReadAll(resp.Body)
		return err == nil && resp.StatusCode == status, string(body)
	}, 0)
	return string(body)
}
