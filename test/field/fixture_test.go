package field

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbline/ebb/test/harness"
)

// fixture makes the destination files of a case. Two shapes are used:
//
//	chain  inventory, fraudCheck | shipping after inventory | billing after fraudCheck and shipping: as shipped
//	flat   inventory, fraudCheck, shipping | billing after fraudCheck: what waits for what is left to the case
//
// Times are a tenth of the shipped ones or less, except the timeout of a call: it is only reached where a case wants that.
type fixture struct {
	files map[string]*file
}

// file is one destination with what cases vary; the zero value of a field takes the fixture's default.
type file struct {
	after      string
	idempotent string // true
	timeout    string // 5s
	attempts   int    // 4
	patience   string // 15m
	revert     string // instead of the destination's own, indented by two
	lookup     string // a line of its own
}

func chain() *fixture {
	return &fixture{map[string]*file{
		"inventory": {}, "fraudCheck": {}, "shipping": {after: "[inventory]"}, "billing": {after: "[fraudCheck, shipping]"},
	}}
}

func flat() *fixture {
	return &fixture{map[string]*file{"inventory": {}, "fraudCheck": {}, "shipping": {}, "billing": {}}}
}

// with changes one destination.
func (f *fixture) with(name string, change func(*file)) *fixture {
	change(f.files[name])
	return f
}

// write makes a folder of the files.
func (f *fixture) write(t *testing.T) string {
	t.Helper()
	return harness.WriteDestinations(t, f.texts())
}

func (f *fixture) texts() map[string]string {
	out := map[string]string{}
	for name, d := range f.files {
		out[name+".yaml"] = d.text(name)
	}
	return out
}

func (d *file) text(name string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	or := func(v, fallback string) string {
		if v == "" {
			return fallback
		}
		return v
	}
	line("destination: %s", name)
	line("on: OrderCreated")
	if d.after != "" {
		line("after: %s", d.after)
	}
	line("base_url: \"${env:%s_URL}\"", strings.ToUpper(name))
	line("auth: { bearer: \"${env:FIELD_TOKEN}\" }")
	line("idempotent: %s", or(d.idempotent, "true"))
	line("timeout: %s", or(d.timeout, "5s"))
	line("patience: %s", or(d.patience, "15m"))
	attempts := d.attempts
	if attempts == 0 {
		attempts = 4
	}
	line("retry: { max_attempts: %d, base: 40ms, max: 200ms, retry_after: { cap: 50ms } }", attempts)
	if d.lookup != "" {
		line("%s", d.lookup)
	}
	if name == "billing" {
		b.WriteString(billingRoutes)
		return b.String()
	}
	b.WriteString(requests[name])
	if d.revert != "" {
		line("%s", d.revert)
		return b.String()
	}
	b.WriteString(reverts[name])
	return b.String()
}

var requests = map[string]string{
	"inventory": `request:
  method: POST
  url: /api/inventory/reserve
  body: { orderId: "{event:$.orderId}", shippingType: "{event:$.shippingType}" }
`,
	"fraudCheck": `request:
  method: POST
  url: /api/fraud/check
  body: { orderId: "{event:$.orderId}", totalAmount: "{event:$.totalAmount}" }
`,
	"shipping": `request:
  method: POST
  url: /api/domestic-shipping
  body: { orderId: "{event:$.orderId}", customerId: "{event:$.customerId}" }
`,
}

var reverts = map[string]string{
	"inventory": `revert:
  method: DELETE
  url: /api/inventory/{reservationId}/release
  extract: { reservationId: "response:$.reservationId" }
`,
	"fraudCheck": "revert: none\n",
	"shipping": `revert:
  method: POST
  url: /api/domestic-shipping/{shipmentId}/cancel
  extract: { shipmentId: "response:$.shipmentId" }
  body: { shipmentId: "{shipmentId}" }
`,
}

// billingRoutes are the two ways of the shared fixture, divided by the risk score.
const billingRoutes = `request:
  method: POST
  body: { orderId: "{event:$.orderId}", amount: "{event:$.totalAmount}", currency: "{event:$.currency}" }
routes:
  - when: { from: fraudCheck, path: "$.riskScore", op: lt, value: 70 }
    url: /api/billing
    revert:
      method: POST
      url: /api/billing/{cid}/refund
      extract: { cid: "response:$.transaction.id", amount: "request:$.amount", currency: "request:$.currency" }
      body: { charge: "{cid}", amount: "{amount}", currency: "{currency}" }
  - when: { from: fraudCheck, path: "$.riskScore", op: gte, value: 70 }
    url: /api/high-value-processing
    revert:
      method: POST
      url: /api/high-value-processing/{cid}/cancel
      extract: { cid: "response:$.processingId", amount: "request:$.amount", currency: "request:$.currency" }
      body: { charge: "{cid}", amount: "{amount}", currency: "{currency}" }
otherwise: park
`
