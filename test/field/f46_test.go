package field

import (
	"encoding/binary"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// pricing is a destination of its own for events of somebody else.
const pricing = `destination: pricing
on: Priced
base_url: "${env:FRAUDCHECK_URL}"
auth: { bearer: "${env:FIELD_TOKEN}" }
idempotent: true
timeout: 5s
request:
  method: POST
  url: /api/fraud/check
  body: { orderId: "{event:$.orderId}", totalAmount: "{event:$.amount}", state: "{event:$.state}" }
revert: none
`

const (
	pricedV1 = `{"type":"record","name":"Priced","namespace":"shop","fields":[{"name":"orderId","type":"long"},
		{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
		{"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID"]}}]}`
	pricedV2 = `{"type":"record","name":"Priced","namespace":"shop","fields":[{"name":"orderId","type":"long"},
		{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":3}},
		{"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID","REFUNDED"]}}]}`
	cancelledInMillis = `{"type":"record","name":"OrderCancelled","namespace":"ebb","fields":[{"name":"orderId","type":"long"},
		{"name":"version","type":"long"},{"name":"reason","type":["null","string"],"default":null},
		{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}}]}`
	parkedWithText = `{"type":"record","name":"SagaParked","namespace":"ebb","fields":[{"name":"sagaId","type":"string"},{"name":"revision","type":"string"}]}`
)

// written makes a payload of an Avro body by hand, under a schema that the registry gets as a new subject: long and enum values are
// varints, text and bytes have their length before them.
func (s *stack) written(subject, schema string, values ...any) (payload []byte, id int) {
	s.t.Helper()
	var body []byte
	for _, v := range values {
		switch v := v.(type) {
		case int:
			body = binary.AppendVarint(body, int64(v))
		case string:
			body = append(binary.AppendVarint(body, int64(len(v))), v...)
		}
	}
	id = s.register(subject, schema)
	return framed(id, body), id
}

// TestF46 is "Avro evolution that passes". Of the pairs that may not be released, package schemas has a table; here is what becomes of
// records that were written with such schemas all the same: they are read as their writer meant them, or parked with their schema id,
// and never misread.
func TestF46(t *testing.T) {
	t.Parallel()
	f := chain()
	s := &stack{t: t, sim: harness.StartSim(t)}
	files := f.texts()
	files["pricing.yaml"] = pricing
	s.dir = harness.WriteDestinations(t, files)
	s.ebb = harness.Start(t, harness.Options{
		Sim: s.sim, Destinations: s.dir, Partitions: 1, Env: []string{"EBB_LOG_LEVEL=debug", "FIELD_TOKEN=" + canary},
	})
	s.orders = s.ebb.Orders()
	id := s.create()
	s.completed(id, 1)

	// The registry refuses the pair under one subject.
	registry := s.registry()
	for _, r := range registry.SetCompatibility(t.Context(), sr.SetCompatibility{Level: sr.CompatFullTransitive}, "prices") {
		require.NoError(t, r.Err)
	}
	v1, _ := s.written("prices", pricedV1, 4601, "\x04\xd2", 1) // 1234 at scale 2, PAID
	_, err := registry.CreateSchema(t.Context(), "prices", sr.Schema{Schema: pricedV2})
	var refused *sr.ResponseError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusConflict, refused.StatusCode)

	// Written under another one all the same.
	v2, _ := s.written("other-prices", pricedV2, 4602, "\x30\x34", 2)             // 12340 at scale 3, REFUNDED
	cancel, cancelID := s.written("other-cancels", cancelledInMillis, 1, 2, 0, 1) // no reason
	parked, parkedID := s.written("other-sagas", parkedWithText, s.sagaID(id), "9")
	at := s.write(
		&kgo.Record{Topic: schemas.TopicOrder, Key: []byte("4601"), Value: v1, Headers: headersOf("0199d0f4-0000-7000-8000-000000004601", "Priced")},
		&kgo.Record{Topic: schemas.TopicOrder, Key: []byte("4602"), Value: v2, Headers: headersOf("0199d0f4-0000-7000-8000-000000004602", "Priced")},
		&kgo.Record{Topic: schemas.TopicOrder, Key: []byte(id), Value: cancel, Headers: headersOf("0199d0f4-0000-7000-8000-000000004603", schemas.EventOrderCancelled)},
		&kgo.Record{Topic: schemas.TopicSaga, Key: []byte(id), Value: parked, Headers: headersOf("0199d0f4-0000-7000-8000-000000004604", schemas.EventSagaParked)},
	)
	s.completed(s.create(), 1)
	for _, group := range []string{"ebb.pricing", harness.CompensatorGroup} {
		s.read(group)
	}

	s.until(func() (bool, string) {
		return len(s.calls("4601", sim.FraudCheck, "")) == 1 && len(s.calls("4602", sim.FraudCheck, "")) == 1, "the prices were not sent"
	})
	require.JSONEq(t, `{"orderId":4601,"totalAmount":12.34,"state":"PAID"}`, string(s.calls("4601", sim.FraudCheck, "")[0].Body))
	require.Equal(t, `{"orderId":4602,"totalAmount":12.340,"state":"REFUNDED"}`, string(s.calls("4602", sim.FraudCheck, "")[0].Body), "digit for digit")

	detail := func(reader, topic string, offset int64) string {
		return s.text(`SELECT coalesce((SELECT detail FROM ebb.dead_letters WHERE reader = $1 AND topic = $2 AND record_offset >= $3), '')`, reader, topic, offset)
	}
	got := detail(harness.CompensatorGroup, schemas.TopicOrder, at+2)
	require.Contains(t, got, "meaning changes")
	require.Contains(t, got, schemaID(cancelID))
	s.until(func() (bool, string) {
		got = detail(harness.ProducerGroup, schemas.TopicSaga, 0)
		return contains(got, schemaID(parkedID)), got
	})
	require.Equal(t, "CONFIRMED", s.order(id).Status, "neither cancelled nor parked by what cannot be read")
	require.Nil(t, s.order(id).Attention)
	require.Equal(t, "0", s.deadLetters("ebb.pricing"))
	s.orders.AwaitAllEnded(s.n)
	for _, found := range harness.Judge(t, s.ebb, s.sim) { // asking for a price leaves nothing behind in the outside world
		require.Contains(t, found, ":pricing:do has succeeded without an effect")
	}
	harness.Canary(t, s.ebb, canary)
}
