package consumers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/schemas"
)

// poison is a record that no event can be read from.
type poison struct {
	what    string
	record  *kgo.Record
	detail  string // part of the dead letter's; empty: passed over
	counted string // result in the metric
}

// poisons lists every kind. One that is wrong in a single way is otherwise a good record of order 1.
func (b *bundle) poisons() []poison {
	b.t.Helper()
	good := b.kafka.Record(stream.EventID(1), 1, schemas.OrderStatusUpdated{OrderID: 1, OldStatus: "PENDING", NewStatus: "CONFIRMED", At: time.Now().UTC()}, 1)
	with := func(change func(r *kgo.Record)) *kgo.Record {
		r := &kgo.Record{Topic: good.Topic, Key: good.Key, Value: bytes.Clone(good.Value), Headers: append([]kgo.RecordHeader(nil), good.Headers...)}
		change(r)
		return r
	}
	value := func(v string) *kgo.Record { return with(func(r *kgo.Record) { r.Value = []byte(v) }) }
	header := func(name string, v []byte) *kgo.Record {
		return with(func(r *kgo.Record) { r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: v}) })
	}
	without := func(i int) *kgo.Record {
		return with(func(r *kgo.Record) { r.Headers = append(r.Headers[:i:i], r.Headers[i+1:]...) })
	}
	const dead = "dead_letter"
	return []poison{
		{"null", with(func(r *kgo.Record) { r.Value = nil }), "", "null"},
		{"null without anything", &kgo.Record{Topic: good.Topic}, "", "null"},
		{"a type for others", header(schemas.HeaderEventType, []byte("SomethingElse")), "", "skipped"},
		{"empty", value(""), "empty payload", dead},
		{"white space", value(" \n"), "empty payload", dead},
		{"half", value(`{"orderId":`), "truncated", dead},
		{"list", value(`[]`), "not an object", dead},
		{"number", value(`1`), "not an object", dead},
		{"text", value(`hello`), "neither Avro wire format nor a JSON object", dead},
		{"wrong magic byte", with(func(r *kgo.Record) { r.Value[0] = 1 }), "neither Avro wire format nor a JSON object", dead},
		{"header cut", value("\x00\x00\x00"), "truncated", dead},
		{"schema id zero", value("\x00\x00\x00\x00\x00\x02"), "schema ids are between", dead},
		{"body cut", with(func(r *kgo.Record) { r.Value = r.Value[:len(r.Value)-3] }), "truncated", dead},
		{"trailing bytes", with(func(r *kgo.Record) { r.Value = append(r.Value, 0) }), "trailing bytes", dead},
		{"unknown schema", value("\x00\x00\x00\xff\xff\x01"), "schema id 65535", dead},
		{"unknown schema again", value("\x00\x00\x00\xff\xff\x02"), "schema id 65535", dead},
		{"oversized", value(`{"a":"` + string(bytes.Repeat([]byte("x"), schemas.MaxPayload)) + `"}`), "too large", dead},
		{"not UTF-8", value("{\"a\":\"\xff\"}"), "not UTF-8", dead},
		{"member twice", value(`{"orderId":1,"orderId":2}`), "there twice", dead},
		{"number of a thousand digits", value(`{"orderId":1e999999999}`), "too large", dead},
		{"no id", without(0), "header id is missing", dead},
		{"null id", header("id", nil), "header id is missing", dead},
		{"bad id", header("id", []byte("one")), "header id", dead},
		{"no type", without(1), "header eventType is missing", dead},
		{"bad version", header(schemas.HeaderAggregateVersion, []byte("two")), "header aggregateVersion is not a number", dead},
		{"no key", with(func(r *kgo.Record) { r.Key = nil }), "no key", dead},
		{"empty key", with(func(r *kgo.Record) { r.Key = []byte{} }), "no key", dead},
		{"key with a NUL", with(func(r *kgo.Record) { r.Key = []byte("1\x00") }), "control characters", dead},
		{"no headers", with(func(r *kgo.Record) { r.Headers = nil }), "header id is missing", dead},
	}
}

// Field case F24: what cannot be read is put aside as it came, a null is passed over and counted, and what stands behind goes on.
func TestPoisonRecordsAreKeptAndHoldNothingBack(t *testing.T) {
	t.Parallel()
	b := setupOn(t, 1)
	list := b.poisons()
	want := map[string]int{"event": 1}
	write := b.largeWriter()
	for _, p := range list {
		write(p.record)
		want[p.counted]++
	}
	dead := want["dead_letter"]
	b.create(2, 2)
	registry := prometheus.NewRegistry()
	run := b.start(func(c *consumers.Config) { c.Metrics = consumers.NewMetrics(registry) })
	b.awaitCompleted(1)
	run.end()

	for at, p := range list {
		b.kept(int64(at), p)
	}
	require.Equal(t, want, results(t, registry))
	require.Equal(t, dead, b.count("SELECT count(*) FROM ebb.dead_letters"))
	require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.sagas"))
	require.Zero(t, b.count("SELECT count(*) FROM ebb.outbox WHERE type = 'CompensationRequested'"))
	require.Equal(t, 1, b.world.count())
	require.Equal(t, int64(len(list)+1), b.kafka.Committed(group, schemas.TopicOrder, 0))

	// G11: reading them again adds nothing.
	_, err := b.kafka.Admin.DeleteGroups(t.Context(), group)
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), "DELETE FROM ebb.offsets")
	require.NoError(t, err)
	run = b.start()
	b.create(3, 3)
	b.awaitCompleted(2)
	run.end()
	require.Equal(t, dead, b.count("SELECT count(*) FROM ebb.dead_letters"))
	require.Equal(t, 2, b.world.count())
}

// largeWriter writes records that are larger than brokers take by default.
func (b *bundle) largeWriter() func(r *kgo.Record) {
	b.t.Helper()
	size := "4194304"
	_, err := b.kafka.Admin.AlterTopicConfigs(b.t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &size}}, schemas.TopicOrder)
	require.NoError(b.t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers...), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(4<<20))
	require.NoError(b.t, err)
	b.t.Cleanup(client.Close)
	return func(r *kgo.Record) {
		b.t.Helper()
		require.NoError(b.t, client.ProduceSync(b.t.Context(), r).FirstErr())
	}
}

// kept checks that a record stands in the dead letters byte for byte and with its position, or not at all.
func (b *bundle) kept(offset int64, p poison) {
	b.t.Helper()
	require.Equal(b.t, offset, p.record.Offset, p.what)
	var reason, detail string
	var key, value, headers []byte
	err := b.pool.QueryRow(b.t.Context(), `SELECT reason, detail, key, value, headers FROM ebb.dead_letters
		WHERE reader = $1 AND topic = $2 AND partition = 0 AND record_offset = $3`, group, schemas.TopicOrder, offset).Scan(&reason, &detail, &key, &value, &headers)
	if p.detail == "" {
		require.Error(b.t, err, p.what)
		return
	}
	require.NoError(b.t, err, p.what)
	require.Equal(b.t, "undecodable", reason, p.what)
	require.Contains(b.t, detail, p.detail, p.what)
	require.Equal(b.t, p.record.Key, key, p.what)
	require.True(b.t, bytes.Equal(p.record.Value, value), p.what)
	var pairs [][][]byte // base64 in the column
	require.NoError(b.t, json.Unmarshal(headers, &pairs), p.what)
	require.Len(b.t, pairs, len(p.record.Headers), p.what)
	for i, h := range p.record.Headers {
		require.Equal(b.t, [][]byte{[]byte(h.Key), h.Value}, pairs[i], p.what)
	}
}

// results reads what became of the records from the metric.
func results(t *testing.T, registry *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	out := map[string]int{}
	for _, f := range families {
		if f.GetName() != "ebb_records_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "result" {
					out[l.GetValue()] = int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return out
}

// Records of an outbox that is not Ebb's: plain JSON under other headers, without a version, in the order of the partition, with
// numbers digit for digit and the time at which they were made.
func TestForeignOutbox(t *testing.T) {
	t.Parallel()
	b := setupOn(t, 1)
	const made = "2025-01-02T03:04:05.678Z"
	write := func(order int64, value string) {
		id := stream.EventID(order)
		b.kafka.Write(&kgo.Record{Topic: schemas.TopicOrder, Key: orderKey(order), Value: []byte(value), Headers: []kgo.RecordHeader{
			{Key: "event_id", Value: []byte(`"` + id + `"`)}, {Key: "event_name", Value: []byte(schemas.EventOrderCreated)}, {Key: "made", Value: []byte(made)},
		}})
	}
	const body = `{"orderId":9007199254740993,"totalAmount":0.10,"note":"\u00e9"}`
	write(1, body)
	write(2, `"{\"orderId\":2}"`)
	write(3, string(b.kafka.Record(stream.EventID(3), 1, schemas.OrderStatusUpdated{OrderID: 3, OldStatus: "A", NewStatus: "B", At: time.Now().UTC()}, 3).Value))
	b.create(4, 4) // under the contract's names
	write(5, `{"orderId":5}`)
	b.kafka.Away(503)
	run := b.start(func(c *consumers.Config) {
		c.Records = consumers.Records{ID: "event_id", Type: "event_name", Time: "made"}
		c.Decoder = b.kafka.NewCodec().As(schemas.FormatJSON)
	})
	b.awaitCompleted(3)
	run.end()

	for _, order := range []int64{1, 2, 5} {
		require.Equal(t, "SUCCEEDED", b.step(order).State)
	}
	require.Equal(t, 1, b.count("SELECT aggregate_version FROM ebb.sagas WHERE id = $1", stream.EventID(1)), "the place in the partition")
	require.Equal(t, 5, b.count("SELECT aggregate_version FROM ebb.sagas WHERE id = $1", stream.EventID(5)))
	var text string
	var at time.Time
	row := b.pool.QueryRow(t.Context(), "SELECT convert_from(body, 'UTF8'), created_at FROM ebb.events WHERE id = $1", stream.EventID(1))
	require.NoError(t, row.Scan(&text, &at))
	require.Equal(t, body, text, "digit for digit")
	require.Equal(t, made, at.UTC().Format(time.RFC3339Nano))
	for _, c := range b.world.all() {
		require.Equal(t, made, c.EventTime.UTC().Format(time.RFC3339Nano))
	}
	for offset, detail := range map[int64]string{2: "neither Avro wire format nor a JSON object", 3: "header event_id is missing"} {
		require.Equal(t, 1, b.count("SELECT count(*) FROM ebb.dead_letters WHERE record_offset = $1 AND detail LIKE '%' || $2 || '%'", offset, detail), fmt.Sprint(offset))
	}
}

func TestRecordsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := consumers.New(consumers.Config{Records: consumers.Records{ID: "eventType"}})
	require.ErrorContains(t, err, "Config.Records")
	require.ErrorContains(t, err, "Config.Store is nil", "every problem is named")
}
