package harness

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// WriteDestinations makes a folder of destination files, by file name or by destination name.
func WriteDestinations(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	RewriteDestinations(t, dir, files)
	return dir
}

// RewriteDestinations makes the files the whole set of a folder: what is not named is removed.
func RewriteDestinations(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	for _, path := range old {
		require.NoError(t, os.Remove(path))
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, strings.TrimSuffix(name, ".yaml")+".yaml"), []byte(text), 0o644))
	}
}

// quick are the limits of the fixture: a tenth of the shipped ones or less, in their ratios.
const quick = `idempotent: true
timeout: 1s
concurrency: 32
retry: { max_attempts: 4, base: 50ms, max: 1s, retry_after: { header: Retry-After, cap: 1s } }
patience: 10m
`

// fixture are the destinations of the shared fixture: stock is inventory, risk is fraudCheck.
var fixture = map[string]string{
	"inventory": `destination: inventory
on: OrderCreated
base_url: "${env:INVENTORY_URL}"
request:
  method: POST
  url: /api/inventory/reserve
  body: { orderId: "{event:$.orderId}", customerId: "{event:$.customerId}" }
revert:
  method: DELETE
  url: /api/inventory/{hid}/release
  extract: { hid: "response:$.reservationId" }
` + quick,
	"fraudCheck": `destination: fraudCheck
on: OrderCreated
base_url: "${env:FRAUDCHECK_URL}"
request:
  method: POST
  url: /api/fraud/check
  body: { orderId: "{event:$.orderId}", customerId: "{event:$.customerId}", totalAmount: "{event:$.totalAmount}" }
revert: none
` + quick,
	"shipping": `destination: shipping
on: OrderCreated
base_url: "${env:SHIPPING_URL}"
request:
  method: POST
  url: /api/domestic-shipping
  body: { orderId: "{event:$.orderId}", customerId: "{event:$.customerId}" }
revert:
  method: POST
  url: /api/domestic-shipping/{sid}/cancel
  extract: { sid: "response:$.shipmentId" }
` + quick,
	"billing": `destination: billing
on: OrderCreated
base_url: "${env:BILLING_URL}"
request:
  method: POST
  body: { orderId: "{event:$.orderId}", customerId: "{event:$.customerId}", amount: "{event:$.totalAmount}", currency: "{event:$.currency}" }
routes:
  - when: { from: fraudCheck, path: "$.riskScore", op: lt, value: 70 }
    url: /api/billing
    revert:
      method: POST
      url: /api/billing/{cid}/refund
      extract: { cid: "response:$.transaction.id", amount: "request:$.amount", currency: "request:$.currency" }
      body: { amount: "{amount}", currency: "{currency}" }
  - when: { from: fraudCheck, path: "$.riskScore", op: gte, value: 70 }
    url: /api/high-value-processing
    revert:
      method: POST
      url: /api/high-value-processing/{cid}/cancel
      extract: { cid: "response:$.processingId", amount: "request:$.amount", currency: "request:$.currency" }
      body: { amount: "{amount}", currency: "{currency}" }
` + quick,
}

// Fixture gives the four destinations of the field cases by name: inventory, fraudCheck and shipping side by side, billing after
// fraudCheck, whose score its routes read. Their times are short. The caller owns the map.
func Fixture() map[string]string { return maps.Clone(fixture) }
