package endpoint_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/consumers/endpoint"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vault is a destination whose card is nobody's business, with replies that say in words what the status does not.
const vault = `destination: vault
on: OrderCreated
base_url: "${env:VAULT_URL}"
idempotent: true
request:
  url: /cards/{event:$.orderId}
  headers: { X-Card: "{event:$.card}" }
  body: { card: "{event:$.card}", amount: "{event:$.amount}" }
success_when: { path: $.ok, op: eq, value: true }
expect: [ $.receipt, $.ref ]
classify: [ { status: 409, when: { path: $.code, op: eq, value: in_progress }, as: unknown } ]
revert:
  method: POST
  url: /cards/{ref}/void
  extract: { ref: "response:$.ref", pan: "request:$.card" }
  body: { pan: "{pan}" }
  classify: [ { status: 410, as: succeeded } ]
redact: { headers: [ X-Card ], body: [ $.card ] }
`

const card = "4111-1111-1111-1111"

var (
	keyA = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	keyB = base64.StdEncoding.EncodeToString([]byte("fedcba9876543210fedcba9876543210"))
)

// bundle is an endpoint of the vault and a server in its place.
type bundle struct {
	t   *testing.T
	env map[string]string

	mu    sync.Mutex
	seen  []string
	reply func(w http.ResponseWriter, r *http.Request)
}

type versions struct {
	text string
	err  error
}

func (v versions) VersionOf(_ context.Context, name string, version int) (*journal.Version, error) {
	if v.err != nil {
		return nil, v.err
	}
	out := &journal.Version{}
	out.Name, out.Version, out.Source = name, version, []byte(v.text)
	return out, nil
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, env: map[string]string{"EBB_SEAL_KEY": keyA}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.seen = append(b.seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Card")+" "+string(body))
		b.reply(w, r)
	}))
	t.Cleanup(server.Close)
	b.env["VAULT_URL"] = server.URL
	return b
}

func (b *bundle) endpoint(v versions) *endpoint.HTTP {
	b.t.Helper()
	live, err := spec.Parse("vault.yaml", []byte(vault))
	require.NoError(b.t, err)
	h, err := endpoint.New(endpoint.Config{Live: live, Versions: v, Lookup: b.lookup()})
	require.NoError(b.t, err)
	b.t.Cleanup(h.Close)
	return h
}

func (b *bundle) lookup() spec.Lookup {
	return spec.Lookup{Env: func(name string) (string, bool) {
		v, ok := b.env[name]
		return v, ok
	}}
}

func (b *bundle) answer(status int, body string) {
	b.reply = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Card", r.Header.Get("X-Card"))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var id = saga.ID{1, 2, 3}

func (b *bundle) prepare(h *endpoint.HTTP) []byte {
	b.t.Helper()
	p := h.Prepare(b.t.Context(), journal.Candidate{
		Saga: id, Dest: "vault", SpecVersion: 1, EventType: "OrderCreated", Aggregate: journal.Key{Type: "order", ID: "7"},
		EventBody: []byte(`{"orderId":7,"card":"` + card + `","amount":12345678.90}`), EventTime: time.Now(),
	})
	require.NotEmpty(b.t, p.Content, p.Reason)
	return p.Content
}

func attempt(dir saga.Direction, content []byte) consumers.Call {
	return consumers.Call{
		Claimed: journal.Claimed{
			Saga: id, Dest: "vault", Dir: dir, SpecVersion: 1, Content: content, EventType: "OrderCreated", Aggregate: journal.Key{Type: "order", ID: "7"},
			EventBody: []byte(`{"orderId":7}`), EventTime: time.Now(),
		},
		Key: "e:vault:" + dir.String(), Deadline: time.Now().Add(time.Minute),
	}
}

// TestRedactedStepIsSealedAndSentAsItIs is G13 along a whole step: what is kept has no card in it, what is sent has, and the undo
// works from what was kept.
func TestRedactedStepIsSealedAndSentAsItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.endpoint(versions{text: vault})
	content := b.prepare(h)
	require.NotContains(t, string(content), card)
	var view struct {
		render.Request
		Sealed string
	}
	require.NoError(t, json.Unmarshal(content, &view))
	require.Equal(t, `{"card":"***","amount":12345678.90}`, string(view.Body))
	require.NotEmpty(t, view.Sealed)

	b.answer(200, `{"ok":true,"receipt":"r","ref":"ref/1","card":"`+card+`","note":"charged `+card+`"}`)
	end := h.Attempt(t.Context(), attempt(saga.Do, content))
	require.Equal(t, saga.ClassSucceeded, end.Class, end.Reason)
	require.Equal(t, `POST /cards/7 `+card+` {"card":"`+card+`","amount":12345678.90}`, b.seen[0])
	require.Equal(t, saga.RevertPinned, end.Revert)
	for _, kept := range [][]byte{end.Exchange.Body, end.Exchange.Header, end.Undo, []byte(end.Exchange.Err), []byte(end.Reason)} {
		require.NotContains(t, string(kept), card)
	}
	require.Equal(t, `{"ok":true,"receipt":"r","ref":"ref/1","card":"***","note":"***"}`, string(end.Exchange.Body))

	b.answer(410, `{}`)
	again := b.endpoint(versions{text: vault}) // another process
	undo := again.Attempt(t.Context(), attempt(saga.Undo, end.Undo))
	require.Equal(t, saga.ClassSucceeded, undo.Class, "classify of the revert: %s", undo.Reason)
	require.Equal(t, `POST /cards/ref/1/void  {"pan":"`+card+`"}`, b.seen[1])

	wrong := attempt(saga.Do, end.Undo)
	end = again.Attempt(t.Context(), wrong)
	require.Equal(t, saga.ClassParked, end.Class, "sealed for the undo, so it is not sent as anything else")
	require.Len(t, b.seen, 2)
}

func TestKeysOfTheRing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	content := b.prepare(b.endpoint(versions{text: vault}))
	b.env["EBB_SEAL_KEY"] = keyB
	end := b.endpoint(versions{text: vault}).Attempt(t.Context(), attempt(saga.Do, content))
	require.Equal(t, saga.ClassMisconfigured, end.Class, "a key that is missing is our set-up, and costs no attempt")
	require.True(t, end.Outage)
	require.Contains(t, end.Reason, "EBB_SEAL_KEY")
	require.Empty(t, b.seen)

	b.env["EBB_SEAL_KEY"] = keyB + "," + keyA
	b.answer(200, `{"ok":true,"receipt":"r","ref":"x"}`)
	end = b.endpoint(versions{text: vault}).Attempt(t.Context(), attempt(saga.Do, content))
	require.Equal(t, saga.ClassSucceeded, end.Class, end.Reason)

	delete(b.env, "EBB_SEAL_KEY")
	live, err := spec.Parse("vault.yaml", []byte(vault))
	require.NoError(t, err)
	_, err = endpoint.New(endpoint.Config{Live: live, Versions: versions{}, Lookup: b.lookup()})
	require.ErrorContains(t, err, "destination vault redacts fields of its requests: no key to seal with")
	b.env["EBB_ALLOW_PRIVATE"] = "yes"
	b.env["EBB_SEAL_KEY"] = keyA
	_, err = endpoint.New(endpoint.Config{Live: live, Versions: versions{}, Lookup: b.lookup()})
	require.ErrorContains(t, err, "EBB_ALLOW_PRIVATE")
}

// TestRepliesAreReadByTheFile: success_when, classify and expect of the version that the step is pinned to.
func TestRepliesAreReadByTheFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.endpoint(versions{text: vault})
	content := b.prepare(h)
	for _, c := range []struct {
		status int
		body   string
		class  saga.Class
		revert saga.Revert
		note   string
	}{
		{200, `{"ok":true,"receipt":"r","ref":"x"}`, saga.ClassSucceeded, saga.RevertPinned, ""},
		{200, `{"ok":true,"ref":"x"}`, saga.ClassSucceeded, saga.RevertPinned, "the reply lacks $.receipt"},
		{200, `{"ok":true}`, saga.ClassSucceeded, saga.RevertBroken, "the reply lacks $.receipt, $.ref; the undo cannot be built: url: placeholder {ref}: value is absent"},
		{200, `{"ok":false}`, saga.ClassRefused, 0, ""},
		{200, `<html>`, saga.ClassUnknown, 0, ""},
		{409, `{"code":"in_progress"}`, saga.ClassUnknown, 0, ""},
		{409, `{"code":"declined"}`, saga.ClassRefused, 0, ""},
		{410, `{}`, saga.ClassRefused, 0, ""},
	} {
		b.answer(c.status, c.body)
		end := h.Attempt(t.Context(), attempt(saga.Do, content))
		require.Equal(t, c.class, end.Class, c.body)
		require.Equal(t, c.revert, end.Revert, c.body)
		require.Equal(t, c.note, end.Exchange.Err, c.body)
	}
}

// TestNothingIsSentWithoutTheFile: how a reply is read must be known before it comes.
func TestNothingIsSentWithoutTheFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	content := b.prepare(b.endpoint(versions{text: vault}))
	end := b.endpoint(versions{err: errors.New("connection refused")}).Attempt(t.Context(), attempt(saga.Do, content))
	require.True(t, end.HeldBack)
	end = b.endpoint(versions{text: strings.Replace(vault, "redact:", "redacts:", 1)}).Attempt(t.Context(), attempt(saga.Do, content))
	require.Equal(t, saga.ClassParked, end.Class)
	require.Contains(t, end.Reason, "vault version 1 cannot be read by this release")
	require.Empty(t, b.seen)
}
