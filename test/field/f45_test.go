package field

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/test/harness"
)

// TestF45 is "secrets in logs and records", for fields that a file redacts; TestG13 has the credentials. What Ebb writes beyond the
// event itself has them sealed or masked, what it sends has them exactly, and an undo works from what was kept.
func TestF45(t *testing.T) {
	t.Parallel()
	const (
		card  = "card-canary-4111"  // from the event
		token = "token-canary-9f3e" // from the destination
	)
	w := startWorld(t, func(c seen) answer {
		echo := http.Header{"X-Card": {c.Header.Get("X-Card")}, "X-Echo": {"got " + token}}
		switch {
		case c.Destination == "late":
			return says(422, `{}`)
		case c.Destination == "vault" && c.Nth == 1 && strings.HasPrefix(c.Target, "/cards"):
			return answer{500, echo, fmt.Sprintf(`{"error":"no room for %s","token":%q}`, card, token)}
		case c.Destination == "vault" && c.Nth == 2 && c.Method == "POST" && strings.HasPrefix(c.Target, "/cards"):
			return says(503, "<html>"+card+token)
		}
		return answer{200, echo, fmt.Sprintf(`{"id":"t/1","token":%q,"again":{"card":%q}}`, token, card)}
	})
	key := func(b byte) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(b), 32))) }
	s := w.pipeline(t, map[string]string{
		"vault": head("vault", "Paid", `request:
  url: /cards
  query: { pan: "{event:$.card}" }
  headers: { X-Card: "{event:$.card}" }
  body: { card: "{event:$.card}", amount: "{event:$.amount}" }
revert:
  method: POST
  url: /void/{token}
  extract: { token: "response:$.token", pan: "request:$.card" }
  body: { pan: "{pan}", amount: "{request:$.amount}" }
redact: { headers: [X-Card], body: [ $.card, $.token, $.again ] }
`),
		"late": head("late", "Paid", "after: vault\nrequest: { url: /late }\nrevert: none\n"),
	}, "EBB_SEAL_KEY="+key('a'))

	id := s.event("45", "Paid", `{"amount":10.50,"card":"`+card+`"}`)
	s.comesTo(id, "COMPENSATED")
	calls := w.calls("45", "vault")
	require.Equal(t, []string{"POST /cards?pan=" + card, "POST /cards?pan=" + card, "POST /cards?pan=" + card, "POST /void/" + token}, w.targets("45", "vault"))
	for _, c := range calls[:3] {
		require.Equal(t, `{"card":"`+card+`","amount":10.50}`, c.Body, "every attempt is what the first one was (G4)")
		require.Equal(t, card, c.Header.Get("X-Card"))
	}
	require.Equal(t, `{"pan":"`+card+`","amount":10.50}`, calls[3].Body, "the undo works from what was kept")

	harness.Canary(t, s.ebb, token)
	// The card is in the event, which is its producer's; it is nowhere else.
	for _, column := range []string{"ebb.requests.content", "ebb.calls.reply_header", "ebb.calls.reply_body", "ebb.outbox.payload"} {
		table, name := column[:strings.LastIndexByte(column, '.')], column[strings.LastIndexByte(column, '.')+1:]
		for _, secret := range []string{card, base64.StdEncoding.EncodeToString([]byte(card))[:12]} {
			require.Equal(t, "0", s.text(fmt.Sprintf(`SELECT count(*)::text FROM %s WHERE position(convert_to($1, 'UTF8') in %s) > 0`, table, name), secret), column)
		}
	}
	require.Equal(t, "0", s.text(`SELECT count(*)::text FROM ebb.calls WHERE position($1 in error) > 0`, card))
	require.NotContains(t, s.ebb.Output(), card)
	require.NotContains(t, s.metrics(), card)
	client, admin := s.ebb.Kafka()
	for _, r := range harness.Records(t, client, admin, schemas.TopicCompensation, schemas.TopicSaga, schemas.TopicStep) {
		require.NotContains(t, string(r.Value), card)
		require.NotContains(t, string(r.Value), token)
	}
	for _, args := range [][]string{{"saga", "list", "--json"}, {"saga", "show", id}, {"saga", "show", id, "--json"}} {
		out, code := s.run(args...)
		require.Zero(t, code, out)
		require.NotContains(t, out, card)
	}
	shown := s.text(`SELECT convert_from(decode(convert_from(content, 'UTF8')::json ->> 'Body', 'base64'), 'UTF8') FROM ebb.requests
		WHERE saga_id = $1::uuid AND destination = 'vault' AND direction = 'do'`, id)
	require.Equal(t, `{"card":"***","amount":10.50}`, shown, "what is not secret can be read")
}
