package field

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/test/harness"
)

// TestF34 is "numbers: big ids, exponents, money". No number passes through a float on its way: not into a URL, a body, a condition or
// an undo request.
func TestF34(t *testing.T) {
	t.Parallel()
	w := startWorld(t, func(c seen) answer {
		switch {
		case c.Destination == "late":
			return says(422, `{}`)
		case strings.HasPrefix(c.Target, "/charges/"):
			return says(200, `{"charge":{"id":634866135153775564}}`)
		}
		return says(200, `{}`)
	})
	const body = `orderId: "{event:$.orderId}", amount: "{event:$.amount}", jpy: "{event:$.jpy}", kwd: "{event:$.kwd}", text: "of {event:$.amount}"`
	const refund = `
    revert:
      method: POST
      url: /charges/{cid}/refunds
      extract: { cid: "response:$.charge.id", amount: "request:$.amount", jpy: "request:$.jpy", kwd: "request:$.kwd" }
      body: { charge: "{cid}", amount: "{amount}", jpy: "{jpy}", kwd: "{kwd}" }
`
	charge := head("charge", "[OrderCreated, Charged]", "request: { body: { "+body+` } }
routes:
  - when: { path: $.orderId, op: eq, value: 9007199254740992 }
    url: /wrong/{event:$.orderId}
    revert: none
  - when: { path: $.amount, op: eq, value: 12345678.9 }
    url: /charges/{event:$.orderId}`+refund+`  - url: /charges/{event:$.orderId}
    body: { amount: "{event:$.totalAmount}", currency: "{event:$.currency}" }
    revert:
      method: POST
      url: /charges/{cid}/refunds
      extract: { cid: "response:$.charge.id", amount: "request:$.amount" }
      body: { charge: "{cid}", amount: "{amount}" }
`)
	late := head("late", "Charged", "after: charge\nrequest: { url: /late }\nrevert: none\n")
	s := w.pipeline(t, map[string]string{"charge": charge, "late": late})

	id := s.event("34", "Charged", `{"orderId":9007199254740993,"amount":12345678.90,"jpy":5800,"kwd":1.234}`)
	s.comesTo(id, "COMPENSATED")
	calls := w.calls("34", "charge")
	require.Equal(t, []string{"POST /charges/9007199254740993", "POST /charges/634866135153775564/refunds"}, w.targets("34", "charge"))
	require.Equal(t, `{"orderId":9007199254740993,"amount":12345678.90,"jpy":5800,"kwd":1.234,"text":"of 12345678.90"}`, calls[0].Body)
	require.Equal(t, `{"charge":634866135153775564,"amount":12345678.90,"jpy":5800,"kwd":1.234}`, calls[1].Body)

	// The same along the whole way from the order API, where amounts have the scale of their currency.
	_, err := s.ebb.DB().Exec(t.Context(), `ALTER TABLE orders.orders ALTER COLUMN id RESTART WITH 9007199254740993`)
	require.NoError(t, err)
	for _, c := range []struct{ amount, currency, sent string }{
		{"12345678.90", "USD", "12345678.90"}, {"5800", "JPY", "5800"}, {"1.234", "KWD", "1.234"}, {"10000000", "USD", "10000000.00"},
	} {
		order := s.orders.Create("f34-"+c.currency+c.amount, harness.Order{Amount: c.amount, Currency: c.currency})
		require.Len(t, order, 16, "beyond 2^53")
		s.await(order, "CONFIRMED")
		s.cancel(order)
		s.await(order, "CANCELLED")
		calls := w.calls(order, "charge")
		require.Equal(t, []string{"POST /charges/" + order, "POST /charges/634866135153775564/refunds"}, w.targets(order, "charge"))
		require.Equal(t, `{"amount":`+c.sent+`,"currency":"`+c.currency+`"}`, calls[0].Body)
		require.Equal(t, `{"charge":634866135153775564,"amount":`+c.sent+`}`, calls[1].Body)
	}
}
