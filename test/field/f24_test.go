package field

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestF24 is "tombstones and poison pills". G2: an offset moves only after its record is durable, and a record that cannot be read is
// durable as it came; one poison record never holds its partition.
func TestF24(t *testing.T) {
	t.Parallel()
	s := start(t, chain(), "")
	const id = "0199d0f4-0000-7000-8000-000000000024"
	values := []struct {
		what, value string
		tombstone   bool
	}{
		{what: "null", tombstone: true}, {what: "empty"}, {what: "half", value: `{"orderId":`}, {what: "list", value: `[]`},
		{what: "unknown schema", value: "\x00\x00\x00\xff\xff\x01"}, {what: "wrong magic byte", value: "\x01\x00\x00\x00\x01\x02"},
		{what: "no JSON and no Avro", value: "hello"}, {what: "member twice", value: `{"orderId":1,"orderId":2}`},
	}
	poison := func(topic, eventType string) (list []*kgo.Record) {
		for _, v := range values {
			r := &kgo.Record{Topic: topic, Key: []byte("24"), Value: []byte(v.value), Headers: headersOf(id, eventType)}
			if v.tombstone {
				r.Value = nil
			}
			list = append(list, r)
		}
		return list
	}
	order := poison(schemas.TopicOrder, schemas.EventOrderCreated)
	order = append(order, &kgo.Record{Topic: schemas.TopicOrder, Key: []byte("24"), Value: []byte(`{"orderId":24}`), Headers: headersOf(id, schemas.EventOrderCreated)[1:]})
	saga := poison(schemas.TopicSaga, schemas.EventSagaCompleted)
	compensation := poison(schemas.TopicCompensation, schemas.EventCompensationRequested)
	s.write(order...)
	s.write(saga...)
	s.write(compensation...)

	s.completed(s.create(), 1)
	s.refuse(sim.Billing, "2") // the topic of compensations goes on too
	refused := s.create()
	s.await(refused, "REJECTED")

	for _, destination := range []string{sim.Inventory, sim.FraudCheck, sim.Shipping, sim.Billing} {
		s.keptAsTheyCame(harness.Group(destination), order)
		require.Contains(t, s.metrics(), fmt.Sprintf("ebb_records_total{destination=%q,result=\"null\"} 1\n", destination))
	}
	s.keptAsTheyCame(harness.CompensatorGroup, compensation)
	s.keptAsTheyCame(harness.ProducerGroup, saga)
	require.Equal(t, "2", s.text(`SELECT count(*)::text FROM ebb.sagas`), "of a record with no order no saga is made")
	require.Equal(t, "1", s.text(`SELECT count(*)::text FROM ebb.outbox WHERE type = 'CompensationRequested'`))
	require.Empty(t, s.calls("24", "", ""))
	before := s.text(`SELECT count(*)::text FROM ebb.dead_letters`)
	s.oracle()
	s.rerun()
	require.Equal(t, before, s.text(`SELECT count(*)::text FROM ebb.dead_letters`), "reading them again adds nothing")
}

// keptAsTheyCame compares the reader's dead letters with the records, tombstones aside, byte for byte.
func (s *stack) keptAsTheyCame(reader string, records []*kgo.Record) {
	s.t.Helper()
	n := 0
	for _, r := range records {
		var key, value, headers []byte
		err := s.ebb.DB().QueryRow(s.t.Context(), `SELECT key, value, headers FROM ebb.dead_letters
			WHERE reader = $1 AND topic = $2 AND partition = $3 AND record_offset = $4`, reader, r.Topic, r.Partition, r.Offset).Scan(&key, &value, &headers)
		if r.Value == nil {
			require.Error(s.t, err, "a tombstone is no dead letter")
			continue
		}
		n++
		what := fmt.Sprintf("%s at %s/%d: %q", reader, r.Topic, r.Offset, r.Value)
		require.NoError(s.t, err, what)
		require.Equal(s.t, string(r.Key), string(key), what)
		require.Equal(s.t, string(r.Value), string(value), what)
		var pairs [][][]byte
		require.NoError(s.t, json.Unmarshal(headers, &pairs), what)
		got := make([]string, len(pairs))
		for i, p := range pairs {
			got[i] = string(p[0]) + "=" + string(p[1])
		}
		want := make([]string, len(r.Headers))
		for i, h := range r.Headers {
			want[i] = h.Key + "=" + string(h.Value)
		}
		require.Equal(s.t, strings.Join(want, "\n"), strings.Join(got, "\n"), what)
	}
	require.Equal(s.t, fmt.Sprint(n), s.deadLetters(reader), reader)
}
