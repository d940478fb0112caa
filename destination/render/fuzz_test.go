package render_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/render"
)

// FuzzPlaceholder puts any text into every place and checks that it stays
// where it was put.
func FuzzPlaceholder(f *testing.F) {
	for _, seed := range []string{"h-1", "", " ", "..", "%2e%2e%2f", "a/b?x=1#f", "{cid}", "${env:X}", "\r\nX: 1", "\"\\", "é\u2028", "\x00", "//h/x", "@h", "[::1]"} {
		f.Add(seed)
	}
	s := parse(f, `
request:
  method: POST
  url: /holds/{event:$.v}/items?q={event:$.v}&z=1
  headers: { X-Value: "{event:$.v}" }
  body: { whole: "{event:$.v}", text: "<{event:$.v}>" }
revert: none
`)
	f.Fuzz(func(t *testing.T, value string) {
		event, err := json.Marshal(map[string]string{"v": value, "cid": "leak"})
		require.NoError(t, err)
		r := do(t, s, input(string(event)))
		if r.Outcome != render.OutcomeRequest {
			require.Equal(t, render.OutcomePark, r.Outcome)
			return
		}
		if !utf8.ValidString(value) {
			return // json.Marshal has changed it
		}
		u, err := url.Parse("https://api.example.com/base" + r.Request.URL)
		require.NoError(t, err)
		require.Equal(t, "api.example.com", u.Host)
		segments := strings.Split(u.EscapedPath(), "/")
		require.Len(t, segments, 5)
		got, err := url.PathUnescape(segments[3])
		require.NoError(t, err)
		require.Equal(t, value, got)
		require.Equal(t, url.Values{"q": {value}, "z": {"1"}}, u.Query())
		require.Equal(t, value, header(r.Request, "X-Value"))
		var body map[string]string
		require.NoError(t, json.Unmarshal(r.Request.Body, &body))
		require.Equal(t, map[string]string{"whole": value, "text": "<" + value + ">"}, body)
	})
}

// FuzzEvent renders from any bytes: no panic, and a body is always JSON.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{`{"v":1}`, `{"v":[{"k":"x"}]}`, `{"v":"\ud83d"}`, `[[[`, `{"v":1e999}`, ` {"v" : {"":null} } `} {
		f.Add([]byte(seed), []byte(seed))
	}
	s := parse(f, `
request:
  method: POST
  url: /a
  body: { v: "{event:$.v}", all: "{event:$}", w: "{from:b:$..k}" }
when: { any: [ { path: "$.v", op: gt, value: 0.5 }, { path: "$.v[?@.k == 'x'].k", op: contains, value: x }, { path: "$.v", op: exists } ] }
revert: none
`)
	f.Fuzz(func(t *testing.T, event, reply []byte) {
		in := input("")
		in.Event = event
		in.Responses = map[string]render.Response{"b": {Status: 200, Body: reply}}
		r, err := render.Do(s, in)
		require.NoError(t, err)
		again, err := render.Do(s, in)
		require.NoError(t, err)
		require.Equal(t, r, again, "the same input gives the same bytes")
		if r.Outcome == render.OutcomeRequest {
			require.True(t, json.Valid(r.Request.Body))
		}
	})
}
