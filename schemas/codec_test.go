package schemas_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	twmb "github.com/twmb/avro"

	"github.com/ebbline/ebb/schemas"
)

const sagaID = "01987a3c-0d5e-7a11-9c3f-2b1a5d6e7f80"

var at = time.Date(2025, 8, 4, 18, 0, 0, 123456000, time.UTC)

func rat(t *testing.T, text string) *big.Rat {
	t.Helper()
	r, err := schemas.ParseDecimal(text, schemas.AmountPrecision, schemas.AmountScale)
	require.NoError(t, err)
	return r
}

func orderCreated(t *testing.T) schemas.OrderCreated {
	return schemas.OrderCreated{
		OrderID: 9007199254740993, CustomerID: "customer-123", TotalAmount: rat(t, "12345678.90"),
		Currency: "USD", ShippingType: "domestic", CreatedAt: at,
	}
}

// samples has one value per event type and the JSON it decodes to.
func samples(t *testing.T) map[string]struct {
	value any
	json  string
} {
	type sample = struct {
		value any
		json  string
	}
	states := []schemas.DestinationState{
		{Name: "billing", State: "SUCCEEDED"},
		{Name: "shipping", State: "REFUSED", Reason: schemas.NullableText("no \"stock\" <here>")},
	}
	saga := schemas.SagaEvent{SagaID: sagaID, AggregateID: "42", EventType: "OrderCreated", EventRole: "create", Revision: 3, Destinations: states}
	const sagaJSON = `{"sagaId":"` + sagaID + `","aggregateId":"42","eventType":"OrderCreated","eventRole":"create","revision":3,"reason":null,` +
		`"destinations":[{"name":"billing","state":"SUCCEEDED","reason":null},{"name":"shipping","state":"REFUSED","reason":"no \"stock\" <here>"}]}`
	step := schemas.StepEvent{
		SagaID: sagaID, AggregateID: "42", Destination: "billing", Direction: "do", Seq: 7, Attempt: 2, SpecHash: "ab12",
		Request: schemas.NullableBytes([]byte{0, 1, 255}), Response: schemas.NullableBytes([]byte{}), ResponseStatus: 200,
	}
	const stepJSON = `{"sagaId":"` + sagaID + `","aggregateId":"42","destination":"billing","direction":"do","seq":7,"attempt":2,"specHash":"ab12",` +
		`"request":"AAH/","response":"","responseStatus":200,"undoRequest":null,"reason":null}`
	return map[string]sample{
		"OrderCreated": {orderCreated(t), `{"orderId":9007199254740993,"customerId":"customer-123","totalAmount":12345678.90,"currency":"USD","shippingType":"domestic","createdAt":"2025-08-04T18:00:00.123456Z"}`},
		"OrderStatusUpdated": {schemas.OrderStatusUpdated{OrderID: 1, OldStatus: "PENDING", NewStatus: "CONFIRMED", At: at},
			`{"orderId":1,"oldStatus":"PENDING","newStatus":"CONFIRMED","at":"2025-08-04T18:00:00.123456Z"}`},
		"OrderCancelled": {schemas.OrderCancelled{OrderID: -1, Version: 2, Reason: schemas.NullableText("changed mind"), At: at},
			`{"orderId":-1,"version":2,"reason":"changed mind","at":"2025-08-04T18:00:00.123456Z"}`},
		"CompensationRequested": {schemas.CompensationRequested{SagaID: sagaID, AggregateID: "42", Destination: "billing", Class: "REFUSED", Reason: "card declined", FailedAt: at},
			`{"sagaId":"` + sagaID + `","aggregateId":"42","destination":"billing","class":"REFUSED","reason":"card declined","failedAt":"2025-08-04T18:00:00.123456Z"}`},
		"SagaCompleted":   {schemas.SagaCompleted(saga), sagaJSON},
		"SagaCompensated": {schemas.SagaCompensated(saga), sagaJSON},
		"SagaParked":      {schemas.SagaParked(saga), sagaJSON},
		"SagaResumed":     {schemas.SagaResumed(saga), sagaJSON},
		"StepSucceeded":   {schemas.StepSucceeded(step), stepJSON},
		"StepFailed":      {schemas.StepFailed(step), stepJSON},
		"StepUndone":      {schemas.StepUndone(step), stepJSON},
		"DeadLettered": {schemas.DeadLettered{
			Group: "ebb.billing", Topic: "outbox.event.order", Partition: 3, Offset: 99, Reason: "truncated",
			Key: schemas.NullableBytes([]byte("42")), Headers: []schemas.RecordHeader{{Name: "id", Value: schemas.NullableBytes([]byte("x"))}, {Name: "id"}},
			Value: schemas.NullableBytes([]byte{0}), At: at,
		}, `{"group":"ebb.billing","topic":"outbox.event.order","partition":3,"offset":99,"reason":"truncated","key":"NDI=","headers":[{"name":"id","value":"eA=="},{"name":"id","value":null}],"value":"AA==","reference":null,"at":"2025-08-04T18:00:00.123456Z"}`},
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	all := samples(t)
	require.Len(t, all, len(schemas.Messages()), "every event type has a sample")
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ok := schemas.MessageOf(s.value)
			require.True(t, ok)
			require.Equal(t, name, m.EventType)

			payload, err := codec.Encode(t.Context(), s.value)
			require.NoError(t, err)

			got, err := codec.Decode(t.Context(), payload)
			require.NoError(t, err)
			require.Equal(t, m.FullName, got.Name)
			require.Positive(t, got.SchemaID)
			require.Equal(t, s.json, string(got.JSON))

			typed, err := codec.DecodeMessage(t.Context(), payload)
			require.NoError(t, err)
			again, err := codec.Encode(t.Context(), typed)
			require.NoError(t, err)
			require.Equal(t, payload, again)
		})
	}
}

func TestDecodeInto(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	want := orderCreated(t)
	payload, err := codec.Encode(t.Context(), &want)
	require.NoError(t, err)

	got, err := schemas.DecodeInto[schemas.OrderCreated](t.Context(), codec, payload)
	require.NoError(t, err)
	require.Equal(t, want.TotalAmount.String(), got.TotalAmount.String())
	require.True(t, want.CreatedAt.Equal(got.CreatedAt))
	require.Equal(t, want.OrderID, got.OrderID)

	_, err = schemas.DecodeInto[schemas.OrderCancelled](t.Context(), codec, payload)
	var decode *schemas.DecodeError
	require.ErrorAs(t, err, &decode)
	require.Equal(t, schemas.ReasonIncompatible, decode.Reason)

	_, err = schemas.DecodeInto[string](t.Context(), codec, payload)
	var encode *schemas.EncodeError
	require.ErrorAs(t, err, &encode)
}

func TestDecodeOlderAndNewerVersions(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	newer := strings.Replace(message(t, "OrderCancelled").Schema, `"fields": [`, `"fields": [{"name":"channel","type":"string","default":"web"},`, 1)
	registry.seed(t, 500, newer)
	body, err := twmb.MustParse(newer).Encode(map[string]any{"channel": "phone", "orderId": 5, "version": 2, "reason": nil, "at": at})
	require.NoError(t, err)

	got, err := schemas.DecodeInto[schemas.OrderCancelled](t.Context(), codec, wire(500, body))
	require.NoError(t, err)
	require.Equal(t, int64(5), got.OrderID)

	generic, err := codec.Decode(t.Context(), wire(500, body))
	require.NoError(t, err)
	require.JSONEq(t, `{"channel":"phone","orderId":5,"version":2,"reason":null,"at":"2025-08-04T18:00:00.123456Z"}`, string(generic.JSON))
}

func TestGoldenBytes(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	id := message(t, "OrderStatusUpdated")
	payload, err := codec.Encode(t.Context(), schemas.OrderStatusUpdated{OrderID: 1, OldStatus: "A", NewStatus: "BC", At: time.UnixMicro(64).UTC()})
	require.NoError(t, err)
	require.Equal(t, "ebb.OrderStatusUpdated", id.FullName)
	require.Equal(t, "00"+"00000002"+"02"+"0241"+"044243"+"8001", hex.EncodeToString(payload))

	order := orderCreated(t)
	order.OrderID, order.CustomerID, order.ShippingType, order.CreatedAt = 1, "c", "d", time.UnixMicro(1).UTC()
	order.TotalAmount = rat(t, "12.34")
	payload, err = codec.Encode(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, "00"+"00000001"+"02"+"0263"+"0601e208"+"06555344"+"0264"+"02", hex.EncodeToString(payload))
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	change := func(f func(*schemas.OrderCreated)) any {
		o := orderCreated(t)
		f(&o)
		return o
	}
	for name, v := range map[string]any{
		"over-precise":      change(func(o *schemas.OrderCreated) { o.TotalAmount = big.NewRat(1, 3) }),
		"five digits":       change(func(o *schemas.OrderCreated) { o.TotalAmount = big.NewRat(1, 100000) }),
		"too many digits":   change(func(o *schemas.OrderCreated) { o.TotalAmount = big.NewRat(1e15, 1) }),
		"no amount":         change(func(o *schemas.OrderCreated) { o.TotalAmount = nil }),
		"no time":           change(func(o *schemas.OrderCreated) { o.CreatedAt = time.Time{} }),
		"bad UTF-8":         change(func(o *schemas.OrderCreated) { o.CustomerID = "a\xff" }),
		"bad uuid":          schemas.CompensationRequested{SagaID: "42", FailedAt: at},
		"upper-case uuid":   schemas.CompensationRequested{SagaID: strings.ToUpper(sagaID), FailedAt: at},
		"nested bad UTF-8":  schemas.SagaParked{SagaID: sagaID, Destinations: []schemas.DestinationState{{Name: "\xff"}}},
		"not ours":          "text",
		"nil":               nil,
		"nil pointer":       (*schemas.OrderCreated)(nil),
		"larger than 1 MiB": schemas.StepFailed{SagaID: sagaID, Request: schemas.NullableBytes(make([]byte, schemas.MaxPayload))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := codec.Encode(t.Context(), v)
			var refused *schemas.EncodeError
			require.ErrorAs(t, err, &refused)
		})
	}
}

// exactSchema carries one value of each kind that a careless path would change.
const exactSchema = `{"type":"record","name":"Exact","namespace":"t","fields":[
 {"name":"id","type":"long"},
 {"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":19,"scale":4}},
 {"name":"currency","type":["null","string"],"default":null},
 {"name":"fee","type":["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":4}],"default":null},
 {"name":"weight","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":4,"ebb.money":false}},
 {"name":"lines","type":{"type":"array","items":{"type":"record","name":"Line","fields":[{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":4}}]}}}
]}`

func TestExactNumbers(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	registry.seed(t, 300, exactSchema)
	schema := twmb.MustParse(exactSchema)
	for name, c := range map[string]struct {
		amount   string
		currency any
		want     string
		reason   schemas.Reason
	}{
		"usd":                    {"12345678.9", "USD", "12345678.90", ""},
		"usd whole":              {"10", "USD", "10.00", ""},
		"usd negative":           {"-0.5", "USD", "-0.50", ""},
		"jpy":                    {"5800", "JPY", "5800", ""},
		"kwd":                    {"1.234", "KWD", "1.234", ""},
		"rsd has two digits":     {"12.34", "RSD", "12.34", ""},
		"clf has four digits":    {"1.2345", "CLF", "1.2345", ""},
		"no currency":            {"1.5", nil, "1.5000", ""},
		"unknown currency":       {"1.5", "QQQ", "1.5000", ""},
		"gold has no minor unit": {"1.5", "XAU", "1.5000", ""},
		"largest":                {"999999999999999.9999", nil, "999999999999999.9999", ""},
		"jpy would lose":         {"58.5", "JPY", "", schemas.ReasonPrecision},
		"usd would lose":         {"1.001", "USD", "", schemas.ReasonPrecision},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := schema.Encode(map[string]any{
				"id": int64(634866135153775564), "amount": rat(t, c.amount), "currency": c.currency, "fee": nil,
				"weight": rat(t, "1.2345"), "lines": []any{map[string]any{"price": rat(t, "3")}},
			})
			require.NoError(t, err)
			got, err := codec.Decode(t.Context(), wire(300, body))
			if c.reason != "" {
				var decode *schemas.DecodeError
				require.ErrorAs(t, err, &decode)
				require.Equal(t, c.reason, decode.Reason)
				require.Equal(t, "amount", decode.Path)
				return
			}
			require.NoError(t, err)
			var fields map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(got.JSON, &fields))
			require.Equal(t, c.want, string(fields["amount"]))
			require.Equal(t, "634866135153775564", string(fields["id"]))
			require.Equal(t, "1.2345", string(fields["weight"]), "a decimal that is no money keeps its scale")
			price, _, _ := strings.Cut(strings.TrimPrefix(string(fields["lines"]), `[{"price":`), "}")
			require.Equal(t, rat(t, "3").FloatString(scaleOf(c.want)), price, "lines follow the event's currency")
		})
	}
}

func scaleOf(text string) int {
	_, frac, _ := strings.Cut(text, ".")
	return len(frac)
}

// kindsSchema has every Avro kind and every logical type that has a meaning.
const kindsSchema = `{"type":"record","name":"Kinds","namespace":"t","fields":[
 {"name":"n","type":"null"},{"name":"b","type":"boolean"},{"name":"i","type":"int"},
 {"name":"f","type":"float"},{"name":"d","type":"double"},{"name":"big","type":"double"},
 {"name":"s","type":"string"},{"name":"raw","type":"bytes"},
 {"name":"fx","type":{"type":"fixed","name":"Fx","size":2}},
 {"name":"e","type":{"type":"enum","name":"E","symbols":["NEW","PAID"]}},
 {"name":"m","type":{"type":"map","values":"int"}},
 {"name":"u","type":["null","string","long",{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}]},
 {"name":"date","type":{"type":"int","logicalType":"date"}},
 {"name":"tm","type":{"type":"int","logicalType":"time-millis"}},
 {"name":"tu","type":{"type":"long","logicalType":"time-micros"}},
 {"name":"ms","type":{"type":"long","logicalType":"timestamp-millis"}},
 {"name":"us","type":{"type":"long","logicalType":"timestamp-micros"}},
 {"name":"ns","type":{"type":"long","logicalType":"timestamp-nanos"}},
 {"name":"local","type":{"type":"long","logicalType":"local-timestamp-micros"}},
 {"name":"fxdec","type":{"type":"fixed","name":"Fd","size":8,"logicalType":"decimal","precision":9,"scale":2}},
 {"name":"uid","type":{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}},
 {"name":"uids","type":{"type":"string","logicalType":"uuid"}},
 {"name":"dbz","type":{"type":"long","connect.name":"io.debezium.time.MicroTimestamp"}},
 {"name":"dbzms","type":{"type":"long","connect.name":"io.debezium.time.Timestamp"}},
 {"name":"dbzday","type":{"type":"int","connect.name":"io.debezium.time.Date"}},
 {"name":"vsd","type":{"type":"record","name":"VariableScaleDecimal","connect.name":"io.debezium.data.VariableScaleDecimal","fields":[{"name":"scale","type":"int"},{"name":"value","type":"bytes"}]}},
 {"name":"node","type":{"type":"record","name":"Node","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","Node"]}]}},
 {"name":"again","type":"E"}
]}`

func TestEveryKind(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	registry.seed(t, 301, kindsSchema)
	body, err := twmb.MustParse(kindsSchema).Encode(map[string]any{
		"n": nil, "b": true, "i": int32(-7), "f": float32(0.1), "d": 1.5, "big": 12345678901234567890.0,
		"s": "a\"\u2028<é>\n", "raw": []byte{1, 2}, "fx": []byte{0xff, 0}, "e": "PAID", "m": map[string]any{"b": 2, "a": 1},
		"u":    map[string]any{"bytes": big.NewRat(5, 4)},
		"date": at, "tm": 90 * time.Second, "tu": 1500 * time.Microsecond, "ms": at, "us": at, "ns": at.Add(7), "local": at,
		"fxdec": big.NewRat(1234, 100), "uid": "01987a3c-0d5e-7a11-9c3f-2b1a5d6e7f80", "uids": strings.ToUpper(sagaID),
		"dbz": int64(1754330400000000), "dbzms": int64(1754330400000), "dbzday": int32(20304),
		"vsd":  map[string]any{"scale": int32(2), "value": []byte{0x04, 0xd2}},
		"node": map[string]any{"v": 1, "next": map[string]any{"v": 2, "next": nil}}, "again": "NEW",
	})
	require.NoError(t, err)
	got, err := codec.Decode(t.Context(), wire(301, body))
	require.NoError(t, err)
	require.Equal(t, `{"n":null,"b":true,"i":-7,"f":0.1,"d":1.5,"big":12345678901234567000,`+
		`"s":"a\"\u2028<é>\n","raw":"AQI=","fx":"/wA=","e":"PAID","m":{"a":1,"b":2},"u":1.25,`+
		`"date":"2025-08-04","tm":"00:01:30.000000","tu":"00:00:00.001500","ms":"2025-08-04T18:00:00.123000Z",`+
		`"us":"2025-08-04T18:00:00.123456Z","ns":"2025-08-04T18:00:00.123456007Z","local":"2025-08-04T18:00:00.123456",`+
		`"fxdec":12.34,"uid":"01987a3c-0d5e-7a11-9c3f-2b1a5d6e7f80","uids":"01987a3c-0d5e-7a11-9c3f-2b1a5d6e7f80",`+
		`"dbz":"2025-08-04T18:00:00.000000Z","dbzms":"2025-08-04T18:00:00.000000Z","dbzday":"2025-08-04","vsd":12.34,`+
		`"node":{"v":1,"next":{"v":2,"next":null}},"again":"NEW"}`, string(got.JSON))
}

func message(t *testing.T, name string) schemas.Message {
	t.Helper()
	m, ok := schemas.MessageNamed(name)
	require.True(t, ok)
	return m
}

// wire puts the Confluent header before an Avro body.
func wire(id int, body []byte) []byte {
	return append([]byte{0, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}, body...)
}

func TestPlainJSON(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	before := registry.asked.Load()
	for _, payload := range []string{
		`{"orderId":9007199254740993,"amount":12345678.90,"jpy":5800,"kwd":1.234,"e":1E+2}`,
		"  {\"a\" : 1 }\n",
		`{}`,
	} {
		got, err := codec.Decode(context.Background(), []byte(payload))
		require.NoError(t, err)
		require.Equal(t, payload, string(got.JSON), "byte for byte")
		require.Zero(t, got.SchemaID)
		require.Empty(t, got.Name)
	}
	require.Equal(t, before, registry.asked.Load(), "JSON does not need the registry")
}
