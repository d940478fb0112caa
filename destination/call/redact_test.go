package call_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

func redact(t *testing.T, text string) spec.Redact {
	t.Helper()
	s, err := spec.Parse("t.yaml", []byte("destination: x\non: E\nbase_url: http://h\nidempotent: true\nrequest: { url: /a }\nrevert: none\nredact: "+text+"\n"))
	require.NoError(t, err)
	return s.Redact
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	r := call.NewRedactor(redact(t, "{ headers: [X-Card], body: [ $.card, $.token ] }"), spec.Redact{})
	do := render.Request{
		Method: "POST", URL: "/cards/4111%201111%201111?x=1", Body: []byte(`{"card":"4111 1111 1111","note":"of 4111 1111 1111","n":1}`),
		Header: []render.Header{{Name: "x-card", Value: "canary-header"}, {Name: "X-Copy", Value: "is canary-header"}, {Name: "X-Event-Id", Value: "e1"}},
	}
	view, hidden := r.Request(do)
	require.True(t, hidden)
	require.Equal(t, render.Request{
		Method: "POST", URL: "/cards/[masked]?x=1", Body: []byte(`{"card":"***","note":"***","n":1}`),
		Header: []render.Header{{Name: "x-card", Value: "***"}, {Name: "X-Copy", Value: "is [masked]"}, {Name: "X-Event-Id", Value: "e1"}},
	}, view)
	require.Contains(t, string(do.Body), "4111", "what is sent stays as it is")

	header, body := r.Reply(http.Header{"X-Card": {"canary-reply"}, "Echo": {"canary-header"}, "Etag": {"v"}}, []byte(`{"id":7,"token":"tok-12345","echo":"4111 1111 1111"}`))
	require.Equal(t, http.Header{"X-Card": {"***"}, "Echo": {"[masked]"}, "Etag": {"v"}}, header)
	require.Equal(t, `{"id":7,"token":"***","echo":"***"}`, string(body))

	undo, hidden := r.Request(render.Request{Method: "POST", URL: "/refund/tok-12345", Body: []byte(`{"pan":"4111 1111 1111","id":7}`)})
	require.True(t, hidden, "the undo has the values under other names")
	require.Equal(t, `{"pan":"***","id":7}`, string(undo.Body))
	require.Equal(t, "/refund/[masked]", undo.URL)

	_, body = r.Reply(nil, []byte("card=4111"))
	require.Equal(t, `"***"`, string(body), "where the place cannot be found, nothing is kept")
	_, hidden = r.Request(render.Request{Method: "POST", URL: "/a", Body: []byte(`{"n":1}`)})
	require.False(t, hidden)

	none := call.NewRedactor(spec.Redact{})
	_, hidden = none.Request(do)
	require.False(t, hidden)
	headers := call.NewRedactor(redact(t, "{ headers: [X-Card] }"))
	_, _ = headers.Request(do)
	_, body = headers.Reply(nil, []byte("got canary-header here"))
	require.Equal(t, "got [masked] here", string(body))
}
