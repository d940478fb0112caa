package render_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

func parse(t testing.TB, text string) *spec.Spec {
	t.Helper()
	s, err := spec.Parse("t.yaml", []byte("destination: billing\non: OrderCreated\nbase_url: \"${env:URL}\"\nidempotent: true\n"+text))
	require.NoError(t, err)
	return s
}

func input(event string) render.Input {
	return render.Input{
		Event: []byte(event), EventID: "0190-e1", EventType: "OrderCreated", AggregateID: "17",
		CreatedAt:   time.Date(2026, 5, 1, 10, 0, 0, 5e6, time.FixedZone("x", 7200)),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func do(t testing.TB, s *spec.Spec, in render.Input) render.Rendered {
	t.Helper()
	r, err := render.Do(s, in)
	require.NoError(t, err)
	return r
}

func header(r render.Request, name string) string {
	for _, h := range r.Header {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// TestNumbersKeepTheirDigits is field case F34.
func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	s := parse(t, `
request:
  method: POST
  url: /orders/{event:$.orderId}/charges?amount={event:$.amount}
  headers: { X-Order: "{event:$.orderId}" }
  body: { id: "{event:$.orderId}", amount: "{event:$.amount}", jpy: "{event:$.jpy}", kwd: "{event:$.kwd}", fixed: 1.10, text: "order {event:$.orderId}: {event:$.amount}" }
when: { not: { path: "$.orderId", op: eq, value: 9007199254740992 } }
revert:
  method: POST
  url: /charges/{id}/refunds
  extract: { id: "response:$.charge.id", amount: "request:$.amount" }
  body: { charge: "{id}", amount: "{amount}", currency: "{event:$.currency}" }
`)
	in := input(`{"orderId":9007199254740993,"amount":12345678.90,"jpy":5800,"kwd":1.234,"currency":"USD"}`)
	r := do(t, s, in)
	require.Equal(t, render.OutcomeRequest, r.Outcome, r.Reason)
	require.Equal(t, "/orders/9007199254740993/charges?amount=12345678.90", r.Request.URL)
	require.Equal(t, "9007199254740993", header(r.Request, "X-Order"))
	require.Equal(t, `{"id":9007199254740993,"amount":12345678.90,"jpy":5800,"kwd":1.234,"fixed":1.10,"text":"order 9007199254740993: 12345678.90"}`, string(r.Request.Body))
	require.Equal(t, "${env:URL}", r.Request.Base, "the address stays a reference")

	undo, err := render.Undo(s, r.Request.Route, in, r.Request, render.Response{Status: 201, Body: []byte(`{"charge":{"id":634866135153775564}}`)})
	require.NoError(t, err)
	require.Equal(t, render.OutcomeRequest, undo.Outcome, undo.Reason)
	require.Equal(t, "/charges/634866135153775564/refunds", undo.Request.URL)
	require.Equal(t, `{"charge":634866135153775564,"amount":12345678.90,"currency":"USD"}`, string(undo.Request.Body))
}

// TestURLPlaceholders is field case F35.
func TestURLPlaceholders(t *testing.T) {
	t.Parallel()
	s := parse(t, `
request: { method: DELETE, url: "/stock/holds/{event:$.hid}?reason={event:$.why}" }
revert: none
`)
	cases := map[string]struct{ event, url, reason string }{
		"text":            {`{"hid":"h-1","why":"x"}`, "/stock/holds/h-1?reason=x", ""},
		"number":          {`{"hid":12,"why":true}`, "/stock/holds/12?reason=true", ""},
		"special":         {`{"hid":"a/b?x=1#f","why":"a&b=c d+é%"}`, "/stock/holds/a%2Fb%3Fx%3D1%23f?reason=a%26b%3Dc%20d%2B%C3%A9%25", ""},
		"dots inside":     {`{"hid":"a..b","why":"..."}`, "/stock/holds/a..b?reason=...", ""},
		"absent":          {`{"why":"x"}`, "", "url: placeholder {event:$.hid}: value is absent"},
		"null":            {`{"hid":null,"why":"x"}`, "", "url: placeholder {event:$.hid}: value is null"},
		"empty":           {`{"hid":"","why":"x"}`, "", "url: placeholder {event:$.hid}: value is blank"},
		"blank":           {`{"hid":"  \u00a0","why":"x"}`, "", "url: placeholder {event:$.hid}: value is blank"},
		"object":          {`{"hid":{},"why":"x"}`, "", "url: placeholder {event:$.hid}: value is an object"},
		"array":           {`{"hid":[1],"why":"x"}`, "", "url: placeholder {event:$.hid}: value is an array"},
		"walk up":         {`{"hid":"../../admin","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a . or .. segment"},
		"two dots":        {`{"hid":"..","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a . or .. segment"},
		"one dot":         {`{"hid":".","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a . or .. segment"},
		"backslash":       {`{"hid":"..\\admin","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a . or .. segment"},
		"encoded dots":    {`{"hid":"%2e%2E%2f","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a . or .. segment"},
		"encoded twice":   {`{"hid":"%252e%252e","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a . or .. segment"},
		"encoded forever": {`{"hid":"%25252525252e","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a . or .. segment"},
		"line break":      {`{"hid":"h-1\n","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a control character"},
		"NUL":             {`{"hid":"h\u0000","why":"x"}`, "", "url: placeholder {event:$.hid}: value has a control character"},
		"half a pair":     {`{"hid":"h\ud800","why":"x"}`, "", "url: placeholder {event:$.hid}: value is not valid Unicode"},
		"query null":      {`{"hid":"h","why":null}`, "", "url: placeholder {event:$.why}: value is null"},
		"too long":        {`{"hid":"` + strings.Repeat("h", 9000) + `","why":"x"}`, "", "url: the rendered URL is longer than 8000 bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := do(t, s, input(c.event))
			if c.reason != "" {
				require.Equal(t, render.OutcomePark, r.Outcome)
				require.Equal(t, c.reason, r.Reason)
				return
			}
			require.Equal(t, render.OutcomeRequest, r.Outcome, r.Reason)
			require.Equal(t, c.url, r.Request.URL)
		})
	}
}

func TestURLPartsOfASegment(t *testing.T) {
	t.Parallel()
	s := parse(t, "request: { method: GET, url: \"/a/.{event:$.x}/ORD-{event:$.y}\" }\nrevert: none\n")
	require.Equal(t, "/a/.z/ORD-7", do(t, s, input(`{"x":"z","y":7}`)).Request.URL)
	r := do(t, s, input(`{"x":"%2e","y":7}`))
	require.Equal(t, render.OutcomePark, r.Outcome)
}

// TestInjection is field case F36.
func TestInjection(t *testing.T) {
	t.Parallel()
	s := parse(t, `
request:
  method: POST
  url: /customers
  body: { name: "{event:$.name}", greeting: "Dear {event:$.name}!", braces: "{{x}}" }
revert: none
`)
	name := "Ann \"A\" \\ \n {cid} ${TOKEN} {{.Env}} <&>"
	event, err := json.Marshal(map[string]string{"name": name, "cid": "leak"})
	require.NoError(t, err)
	r := do(t, s, input(string(event)))
	require.Equal(t, render.OutcomeRequest, r.Outcome, r.Reason)
	var body map[string]string
	require.NoError(t, json.Unmarshal(r.Request.Body, &body))
	require.Equal(t, map[string]string{"name": name, "greeting": "Dear " + name + "!", "braces": "{x}"}, body)

	s = parse(t, `
headers: { X-Customer: "{event:$.name}" }
request: { method: POST, url: /customers }
revert: none
`)
	for _, value := range []string{`a\r\nX-Admin: canary`, `a\u0000`, `a\u0085`, ``, `  `} {
		r := do(t, s, input(`{"name":"`+value+`"}`))
		require.Equal(t, render.OutcomePark, r.Outcome, value)
		require.Contains(t, r.Reason, "header X-Customer: ")
		require.NotContains(t, r.Reason, "canary")
	}
	r = do(t, s, input(`{"name":"Zoë"}`))
	require.Equal(t, "Zoë", header(r.Request, "X-Customer"))
}

func TestBodyValues(t *testing.T) {
	t.Parallel()
	s := parse(t, `
request: { method: POST, url: /a, body: { v: "{event:$.v}" } }
revert: none
`)
	for event, want := range map[string]string{
		`{"v": null}`:              `{"v":null}`,
		`{"v":""}`:                 `{"v":""}`,
		`{"v":{"b":1,"a":[2,{}]}}`: `{"v":{"b":1,"a":[2,{}]}}`,
		`{"v":1E+2}`:               `{"v":1E+2}`,
		`{"v":"\ud800"}`:           `{"v":"\ud800"}`,
		`{"v":1,"v":2}`:            `{"v":2}`,
		`{"w":1}`:                  "body.v: placeholder {event:$.v}: value is absent",
		`[]`:                       "body.v: placeholder {event:$.v}: value is absent",
		`{"v":`:                    "event is not JSON in UTF-8",
		"{\"v\":\"\xff\"}":         "event is not JSON in UTF-8",
		``:                         "event is not JSON in UTF-8",
	} {
		r := do(t, s, input(event))
		if r.Outcome == render.OutcomeRequest {
			require.Equal(t, want, string(r.Request.Body), event)
		} else {
			require.Equal(t, render.OutcomePark, r.Outcome)
			require.Equal(t, want, r.Reason, event)
		}
	}
	s = parse(t, "request: { method: POST, url: /a, body: \"{event:$}\" }\nrevert: none\n")
	require.Equal(t, `{"z":1, "a":2}`, string(do(t, s, input(` {"z":1, "a":2} `)).Request.Body), "a whole event keeps its key order")

	s = parse(t, "request: { method: POST, url: /a, body: { l: [\"{event:$.i[-1]}\", \"no {event:$.o}\"] } }\nrevert: none\n")
	require.Equal(t, `{"l":[2,"no x"]}`, string(do(t, s, input(`{"i":[1,2],"o":"x"}`)).Request.Body))
	require.Equal(t, "body.l[1]: placeholder {event:$.o}: value is null", do(t, s, input(`{"i":[1],"o":null}`)).Reason)

	s = parse(t, "request: { method: POST, url: /a, body: { s: \"{event:$.items[?@.sku=='B'].qty}\" } }\nrevert: none\n")
	require.Equal(t, `{"s":2.50}`, string(do(t, s, input(`{"items":[{"sku":"A","qty":1},{"sku":"B","qty":2.50}]}`)).Request.Body))
	require.Equal(t, "body.s: placeholder {event:$.items[?@.sku=='B'].qty}: path selects 2 values",
		do(t, s, input(`{"items":[{"sku":"B","qty":1},{"sku":"B","qty":2}]}`)).Reason)
	require.Equal(t, "body.s: placeholder {event:$.items[?@.sku=='B'].qty}: value is absent", do(t, s, input(`{"items":[]}`)).Reason)
}

func TestStandardHeaders(t *testing.T) {
	t.Parallel()
	s := parse(t, `
headers: { X-Tenant: acme }
request: { method: POST, url: /a, body: {} , headers: { content-type: application/vnd.api+json } }
revert: { method: POST, url: /undo }
`)
	in := input(`{}`)
	r := do(t, s, in)
	require.Equal(t, []render.Header{
		{Name: "X-Event-Id", Value: "0190-e1"},
		{Name: "X-Event-Type", Value: "OrderCreated"},
		{Name: "X-Aggregate-Id", Value: "17"},
		{Name: "X-Destination", Value: "billing"},
		{Name: "X-Created-At", Value: "2026-05-01T08:00:00.005Z"},
		{Name: "X-Tenant", Value: "acme"},
		{Name: "content-type", Value: "application/vnd.api+json"},
		{Name: "traceparent", Value: in.Traceparent},
	}, r.Request.Header)
	undo, err := render.Undo(s, 0, in, r.Request, render.Response{Status: 200})
	require.NoError(t, err)
	require.Equal(t, "17", header(undo.Request, "X-Revert-Aggregate-Id"))
	require.Equal(t, "OrderCreated", header(undo.Request, "X-Revert-Event-Type"))
	require.Equal(t, "billing", header(undo.Request, "X-Revert-Destination"))
	require.Equal(t, "acme", header(undo.Request, "X-Tenant"), "a revert inherits the common headers")
	require.Empty(t, header(undo.Request, "Content-Type"), "no body, no content type")

	in.Traceparent = "bad\r\nvalue"
	require.Empty(t, header(do(t, s, in).Request, "traceparent"), "tracing never holds an order up")
	in.AggregateID = "17\r\nX-Admin: 1"
	require.Equal(t, "header X-Aggregate-Id: value has a control character", do(t, s, in).Reason)
}

// TestRouting is field case F38.
func TestRouting(t *testing.T) {
	t.Parallel()
	routes := `
request: { method: POST }
routes:
  - when: { from: fraudCheck, path: "$.riskScore", op: lt, value: 70 }
    url: /low
    revert: none
  - when: { from: fraudCheck, path: "$.riskScore", op: gte, value: 70 }
    url: /high
    revert: { method: POST, url: /undo }
  - when: { from: fraudCheck, path: "$.always", op: eq, value: true }
    url: /third
    revert: none
`
	s := parse(t, routes)
	for reply, want := range map[string]string{
		`{"riskScore":70}`:                 "/high",
		`{"riskScore":7E1}`:                "/high",
		`{"riskScore":69.999999999999999}`: "/low",
		`{"riskScore":"70"}`:               "/high",
		`{"riskScore":"69"}`:               "/low",
		`{"riskScore":-1e400}`:             "/low",
		`{"riskScore":1,"always":true}`:    "/low",
		`{"riskScore":"a","always":true}`:  "/third",
		`{}`:                               "value is absent",
		`{"riskScore":null}`:               "value is null",
		`{"riskScore":"abc"}`:              "value is text",
		`{"riskScore":" 70"}`:              "value is text",
		`{"riskScore":[]}`:                 "value is an array",
		`{"riskScore":{}}`:                 "value is an object",
		`{"riskScore":true}`:               "value is true/false",
		`not json`:                         "the reply of fraudCheck is not JSON",
		``:                                 "the reply of fraudCheck is not JSON",
	} {
		in := input(`{}`)
		in.Responses = map[string]render.Response{"fraudCheck": {Status: 200, Body: []byte(reply)}}
		r := do(t, s, in)
		if strings.HasPrefix(want, "/") {
			require.Equal(t, want, r.Request.URL, reply)
			continue
		}
		require.Equal(t, render.OutcomePark, r.Outcome, reply)
		require.Contains(t, r.Reason, "no route matches: routes[0] from fraudCheck $.riskScore lt 70: "+want)
	}
	require.Contains(t, do(t, s, input(`{}`)).Reason, "no reply of fraudCheck is recorded")
	for otherwise, want := range map[string]render.Outcome{"park": render.OutcomePark, "skip": render.OutcomeSkip, "refuse": render.OutcomeRefuse} {
		require.Equal(t, want, do(t, parse(t, routes+"otherwise: "+otherwise+"\n"), input(`{}`)).Outcome)
	}

	single := parse(t, "when: { path: \"$.a\", op: eq, value: b }\nrequest: { method: POST, url: /a }\nrevert: none\n")
	r := do(t, single, input(`{"a":"canary"}`))
	require.Equal(t, render.OutcomeSkip, r.Outcome)
	require.Equal(t, `when is false: event $.a eq "b": value is text`, r.Reason)
}

// TestTruthTable checks every cell of the table in the package comment.
func TestTruthTable(t *testing.T) {
	t.Parallel()
	columns := []string{"absent", "null", `"SHIPPED"`, `"5"`, "5.0", "6", "true", `{"a":1}`, `["SHIPPED",5]`, "several"}
	rows := []struct{ condition, want string }{
		{"op: exists", ".tttttttt" + "t"},
		{"op: eq, value: null", ".t........"},
		{"op: ne, value: null", "..ttttttt."},
		{"op: eq, value: SHIPPED", "..t......."},
		{"op: ne, value: SHIPPED", "...t......"},
		{"op: eq, value: true", "......t..."},
		{"op: ne, value: true", ".........."},
		{"op: ne, value: false", "......t..."},
		{"op: eq, value: 5", "...tt....."},
		{"op: ne, value: 5", ".....t...."},
		{"op: gt, value: 5", ".....t...."},
		{"op: gte, value: 5", "...ttt...."},
		{"op: lt, value: 6", "...tt....."},
		{"op: lte, value: 5.00", "...tt....."},
		{"op: contains, value: HIP", "..t......."},
		{"op: contains, value: SHIPPED", "..t.....t."},
		{"op: contains, value: 5", "........t."},
		{"op: contains, value: null", ".........."},
	}
	for _, row := range rows {
		require.Len(t, row.want, len(columns))
		for i, column := range columns {
			path, event := "$.v", `{"v":`+column+`}`
			switch column {
			case "absent":
				event = `{"w":1}`
			case "several":
				path, event = "$.v[*]", `{"v":["SHIPPED",5,null,true]}`
			}
			for _, negate := range []bool{false, true} {
				leaf := fmt.Sprintf("{ path: %q, %s }", path, row.condition)
				want := row.want[i] == 't'
				if negate {
					leaf, want = "{ not: "+leaf+" }", !want
				}
				s := parse(t, "when: "+leaf+"\nrequest: { method: POST, url: /a }\nrevert: none\n")
				got := do(t, s, input(event)).Outcome == render.OutcomeRequest
				require.Equal(t, want, got, "%s on %s", leaf, column)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	yes, no := `{ path: "$.a", op: exists }`, `{ path: "$.b", op: exists }`
	for condition, want := range map[string]string{
		"{ all: [" + yes + ", " + yes + "] }": "",
		"{ all: [" + yes + ", " + no + "] }":  "when is false: event $.b exists: value is absent",
		"{ any: [" + no + ", " + yes + "] }":  "",
		"{ any: [" + no + ", " + no + "] }":   "when is false: event $.b exists: value is absent, event $.b exists: value is absent",
		"{ not: " + yes + " }":                "when is false: not (event $.a exists) is false",
	} {
		s := parse(t, "when: "+condition+"\nrequest: { method: POST, url: /a }\nrevert: none\n")
		require.Equal(t, want, do(t, s, input(`{"a":1}`)).Reason)
	}
}

func TestUndoOutcomes(t *testing.T) {
	t.Parallel()
	s := parse(t, `
request: { method: POST }
routes:
  - when: { path: "$.kind", op: eq, value: a }
    url: /a
    revert: none
  - url: /b
    body: { amount: 5 }
    revert:
      method: DELETE
      url: /b/{id}
      extract: { id: "response:$.id", amount: "request:$.amount" }
      body: { amount: "{amount}", at: "{createdAt}" }
`)
	in := input(`{}`)
	first := do(t, s, input(`{"kind":"a"}`)).Request
	none, err := render.Undo(s, first.Route, in, first, render.Response{})
	require.NoError(t, err)
	require.Equal(t, render.OutcomeNone, none.Outcome)

	second := do(t, s, in).Request
	require.Equal(t, 1, second.Route)
	for body, want := range map[string]string{
		``:                   "url: placeholder {id}: the reply is not JSON",
		`<html>`:             "url: placeholder {id}: the reply is not JSON",
		`{}`:                 "url: placeholder {id}: value is absent",
		`{"id":null}`:        "url: placeholder {id}: value is null",
		`{"id":"../canary"}`: "url: placeholder {id}: value has a . or .. segment",
		`{"id":"x"}`:         "",
	} {
		r, err := render.Undo(s, second.Route, in, second, render.Response{Status: 200, Body: []byte(body)})
		require.NoError(t, err)
		require.Equal(t, want, r.Reason)
		require.Equal(t, 1, r.Request.Route)
		if want == "" {
			require.Equal(t, `{"amount":5,"at":"2026-05-01T08:00:00.005Z"}`, string(r.Request.Body))
		} else {
			require.Equal(t, render.OutcomeBroken, r.Outcome)
		}
	}
	_, err = render.Undo(s, 2, in, second, render.Response{})
	require.ErrorIs(t, err, render.ErrRoute)
	_, err = render.Undo(nil, 0, in, second, render.Response{})
	require.Error(t, err)
	_, err = render.Do(nil, in)
	require.Error(t, err)
}

// TestShippedFiles renders the files that come with Ebb, there and back.
func TestShippedFiles(t *testing.T) {
	t.Parallel()
	load := func(name string) *spec.Spec {
		data, err := os.ReadFile("../../consumers/destinations/" + name + ".yaml")
		require.NoError(t, err)
		s, err := spec.Parse(name+".yaml", data)
		require.NoError(t, err)
		return s
	}
	order := `{"orderId":9007199254740993,"customerId":"c-1","totalAmount":99.90,"currency":"EUR","shippingType":"domestic","createdAt":"2026-05-01T08:00:00Z"}`
	abroad := strings.Replace(order, "domestic", "international", 1)
	cases := []struct{ name, event, risk, reply, url, body, undoURL, undoBody string }{
		{"inventory", order, "", `{"reservationId":"RES-17-1"}`, "/api/inventory/reserve", order, "/api/inventory/RES-17-1/release", ""},
		{"fraudCheck", order, "", `{}`, "/api/fraud/check", `{"orderId":9007199254740993,"customerId":"c-1","totalAmount":99.90,"currency":"EUR"}`, "", ""},
		{"shipping", order, "", `{"shipmentId":"SHIP-1"}`, "/api/domestic-shipping", `{"orderId":9007199254740993,"customerId":"c-1","totalAmount":99.90,"currency":"EUR","shippingType":"domestic"}`,
			"/api/domestic-shipping/SHIP-1/cancel", `{"shipmentId":"SHIP-1","orderId":9007199254740993,"customerId":"c-1","reason":"payment_failed"}`},
		{"shipping", abroad, "", `{"shipmentId":"SHIP-2"}`, "/api/international-shipping", `{"orderId":9007199254740993,"customerId":"c-1","totalAmount":99.90,"currency":"EUR","shippingType":"international"}`,
			"/api/international-shipping/SHIP-2/cancel", `{"shipmentId":"SHIP-2","orderId":9007199254740993,"customerId":"c-1","reason":"payment_failed"}`},
		{"billing", order, `{"riskScore":25}`, `{"transaction":{"id":"TXN-1"}}`, "/api/billing", `{"orderId":9007199254740993,"customerId":"c-1","amount":99.90,"currency":"EUR"}`,
			"/api/billing/TXN-1/refund", `{"transactionId":"TXN-1","amount":99.90,"currency":"EUR","reason":"order_failed"}`},
		{"billing", order, `{"riskScore":75}`, `{"processingId":"HV-1"}`, "/api/high-value-processing", `{"orderId":9007199254740993,"customerId":"c-1","amount":99.90,"currency":"EUR"}`,
			"/api/high-value-processing/HV-1/cancel", `{"processingId":"HV-1","amount":99.90,"currency":"EUR","reason":"order_failed"}`},
		{"notifications", `{"orderId":1,"oldStatus":"PENDING","newStatus":"SHIPPED","at":"T"}`, "", `{}`, "/api/notifications/shipping-confirmation", `{"orderId":1,"oldStatus":"PENDING","newStatus":"SHIPPED","timestamp":"T"}`, "", ""},
		{"notifications", `{"orderId":1,"oldStatus":"SHIPPED","newStatus":"DELIVERED","at":"T"}`, "", `{}`, "/api/notifications/review-request", `{"orderId":1,"oldStatus":"SHIPPED","newStatus":"DELIVERED","timestamp":"T"}`, "", ""},
		{"notifications", `{"orderId":1,"oldStatus":"PENDING","newStatus":"CONFIRMED","at":"T"}`, "", `{}`, "/api/notifications/status-update", `{"orderId":1,"oldStatus":"PENDING","newStatus":"CONFIRMED","timestamp":"T"}`, "", ""},
	}
	for _, c := range cases {
		s := load(c.name)
		in := input(c.event)
		in.Responses = map[string]render.Response{"fraudCheck": {Status: 200, Body: []byte(c.risk)}}
		r := do(t, s, in)
		require.Equal(t, render.OutcomeRequest, r.Outcome, r.Reason)
		require.Equal(t, "POST", r.Request.Method)
		require.Equal(t, c.url, r.Request.URL)
		require.Equal(t, c.body, string(r.Request.Body))
		undo, err := render.Undo(s, r.Request.Route, in, r.Request, render.Response{Status: 200, Body: []byte(c.reply)})
		require.NoError(t, err)
		if c.undoURL == "" {
			require.Equal(t, render.OutcomeNone, undo.Outcome)
			continue
		}
		require.Equal(t, render.OutcomeRequest, undo.Outcome, undo.Reason)
		require.Equal(t, c.undoURL, undo.Request.URL)
		require.Equal(t, c.undoBody, string(undo.Request.Body))
	}
	lost := do(t, load("shipping"), input(strings.Replace(order, "domestic", "pigeon", 1)))
	require.Equal(t, render.OutcomePark, lost.Outcome, "an order that nobody ships must not go on to billing")
	empty := do(t, load("notifications"), input(`{"newStatus":""}`))
	require.Equal(t, render.OutcomePark, empty.Outcome)
}

func BenchmarkDo(b *testing.B) {
	s := parse(b, `
request: { method: POST, url: "/orders/{event:$.orderId}", body: { orderId: "{event:$.orderId}", amount: "{event:$.totalAmount}", currency: "{event:$.currency}" } }
when: { path: "$.shippingType", op: eq, value: domestic }
revert: none
`)
	in := input(`{"orderId":9007199254740993,"customerId":"c-1","totalAmount":99.90,"currency":"EUR","shippingType":"domestic","createdAt":"2026-05-01T08:00:00Z"}`)
	b.ReportAllocs()
	for b.Loop() {
		if r, _ := render.Do(s, in); r.Outcome != render.OutcomeRequest {
			b.Fatal(r.Reason)
		}
	}
}
