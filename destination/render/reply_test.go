package render_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

func redaction(t testing.TB, paths string) []spec.Path {
	t.Helper()
	s, err := spec.Parse("t.yaml", []byte("destination: x\non: E\nbase_url: http://h\nidempotent: true\nrequest: { url: /a }\nrevert: none\nredact: { body: "+paths+" }\n"))
	require.NoError(t, err)
	return s.Redact.Body
}

func TestReply(t *testing.T) {
	t.Parallel()
	paths := redaction(t, `[ $.a, "$.b[*].id", $.none, $.null, $.n ]`)
	r := render.ParseReply([]byte(`{"a":"x","b":[{"id":1},{"id":2}],"null":null,"n":634866135153775564}`))
	require.True(t, r.IsJSON())
	for i, want := range []bool{true, true, false, false, true} {
		require.Equal(t, want, r.Has(paths[i]), paths[i])
	}
	text, ok := r.Text(paths[4])
	require.True(t, ok)
	require.Equal(t, "634866135153775564", text)
	_, ok = r.Text(paths[1])
	require.False(t, ok, "two values are not one")

	for _, none := range []string{"", "<html>", `{"a":`, "\xff"} {
		r = render.ParseReply([]byte(none))
		require.False(t, r.IsJSON())
		require.False(t, r.Has(paths[0]))
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, paths, want string }{
		{`{"card":"4111111111111111","amount":10.50}`, `$.card`, `{"card":"***","amount":10.50}`},
		{`{"card": {"no":"4111111111111111","exp":[1,30]} , "n":1}`, `$.card`, `{"card": "***" , "n":1}`},
		{`{"card": {"no":"x","exp":2}}`, `[ $.card, $.card.no ]`, `{"card": "***"}`},
		{`{"cards":[{"no":1},{"no":"2"}]}`, `"$.cards[*].no"`, `{"cards":[{"no":"***"},{"no":"***"}]}`},
		{`{"a":{"pin":1},"b":[{"pin":2}]}`, `$..pin`, `{"a":{"pin":"***"},"b":[{"pin":"***"}]}`},
		{`{"note":"paid with 4111111111111111","ref":4111111111111111,"other":1}`, `$.none`, `{"note":"***","ref":"***","other":1}`},
		{`{"other":1}`, `$.card`, `{"other":1}`},
		{`card=4111`, `$.card`, `"***"`},
		{``, `$.card`, ``},
	} {
		masked, _ := render.Redact([]byte(c.body), redaction(t, c.paths), []string{"4111111111111111"})
		require.Equal(t, c.want, string(masked))
	}
	_, found := render.Redact([]byte(`{"card":{"no":"x\u0041","exp":[1,30]}}`), redaction(t, "$.card"), nil)
	require.Equal(t, []string{"xA", "1", "30"}, found)
}

func FuzzRedact(f *testing.F) {
	paths := redaction(f, `[ $.card, "$..pin", "$.list[1:]" ]`)
	for _, seed := range []string{`{"card":"canary-value"}`, `{"a":[{"pin":{"x":"canary-value"}}]}`, `{"list":[1,{"card":2}],"card":null}`, `[`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		masked, found := render.Redact(body, paths, nil)
		if len(body) == 0 {
			return
		}
		require.True(t, json.Valid(masked), "%q", masked)
		again, _ := render.Redact(body, paths, found)
		require.True(t, json.Valid(again))
	})
}

// TestMaskedValuesAreNotSent: what is not kept cannot be read by a later destination.
func TestMaskedValuesAreNotSent(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("t.yaml", []byte("destination: x\non: E\nbase_url: http://h\nidempotent: true\nrequest: { url: /a, body: { v: \"{from:vault:$.card}\" } }\nrevert: none\n"))
	require.NoError(t, err)
	out, err := render.Do(s, render.Input{Event: []byte(`{}`), Responses: map[string]render.Response{"vault": {Status: 200, Body: []byte(`{"card":"***"}`)}}})
	require.NoError(t, err)
	require.Equal(t, render.OutcomePark, out.Outcome)
	require.Contains(t, out.Reason, "vault redacts the value")
}

func TestQueryAndContentType(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("t.yaml", []byte(`destination: x
on: E
base_url: http://h
idempotent: true
request:
  url: /a?fixed=1
  query: { q: "{event:$.q}", "odd name": "a&b=c d", n: 5 }
  content_type: application/vnd.api+json
  body: { a: 1 }
revert: { method: POST, url: /undo, query: { id: "{response:$.id}" } }
`))
	require.NoError(t, err)
	out, err := render.Do(s, render.Input{Event: []byte(`{"q":"x/y&z=1 é"}`)})
	require.NoError(t, err)
	require.Equal(t, render.OutcomeRequest, out.Outcome, out.Reason)
	require.Equal(t, "/a?fixed=1&q=x%2Fy%26z%3D1%20%C3%A9&odd%20name=a%26b%3Dc%20d&n=5", out.Request.URL)
	require.Equal(t, render.Header{Name: "Content-Type", Value: "application/vnd.api+json"}, out.Request.Header[0])

	undo, err := render.Undo(s, 0, render.Input{Event: []byte(`{}`)}, out.Request, render.Response{Body: []byte(`{"id":"r 1"}`)})
	require.NoError(t, err)
	require.Equal(t, "/undo?id=r%201", undo.Request.URL, undo.Reason)

	out, err = render.Do(s, render.Input{Event: []byte(`{}`)})
	require.NoError(t, err)
	require.Equal(t, render.OutcomePark, out.Outcome, "a query value that is not there is not sent as nothing")
}
