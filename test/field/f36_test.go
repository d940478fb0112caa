package field

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestF36 is "injection into body, header, template". A value is data at its place: quoted there, read once, and refused where it
// cannot be.
func TestF36(t *testing.T) {
	t.Parallel()
	w := startWorld(t, func(seen) answer { return says(200, `{"id":"{card} ${FIELD_TOKEN}"}`) })
	s := w.pipeline(t, map[string]string{
		"greet": head("greet", "Greeted", `headers: { X-Customer: "{event:$.title}" }
request:
  url: /greet
  body: { name: "{event:$.name}", letter: "Dear {event:$.name}, {{yes}}", list: [ "{event:$.name}" ] }
revert: { method: POST, url: "/greet/{id}/forget", extract: { id: "response:$.id" }, body: { id: "{id}", name: "{request:$.name}" } }
`),
	}, "TOKEN=canary-of-the-environment")
	const name = "Ann \"A\" \\ \n {cid} ${TOKEN} {{.Env}} </script>\u2028"
	event := func(title string) string {
		text, err := json.Marshal(map[string]any{"name": name, "title": title})
		require.NoError(t, err)
		return string(text)
	}

	id := s.event("good", "Greeted", event(`Ann "A" {cid} ${TOKEN} {{.Env}}`))
	s.comesTo(id, "COMPLETED")
	calls := w.calls("good", "greet")
	require.Len(t, calls, 1)
	var body struct {
		Name, Letter string
		List         []string
	}
	require.NoError(t, json.Unmarshal([]byte(calls[0].Body), &body), calls[0].Body)
	require.Equal(t, name, body.Name)
	require.Equal(t, "Dear "+name+", {yes}", body.Letter)
	require.Equal(t, []string{name}, body.List)
	require.Equal(t, `Ann "A" {cid} ${TOKEN} {{.Env}}`, calls[0].Header.Get("X-Customer"), "nothing is read twice")

	id = s.event("bad", "Greeted", event("a\r\nX-Admin: 1"))
	s.comesTo(id, "RUNNING", "greet do parked: header X-Customer: ", "control character")
	require.NotContains(t, s.sagaState(id), "X-Admin", "the value is not echoed")
	require.Empty(t, w.calls("bad", "greet"))
	s.comesTo(s.event("after", "Greeted", event("Bob")), "COMPLETED") // so the bad one was not tried again meanwhile
	require.Empty(t, w.calls("bad", "greet"))
	require.NotContains(t, s.ebb.Output(), "X-Admin")
}
