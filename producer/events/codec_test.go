package events_test

import (
	"encoding/binary"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"go.uber.org/goleak"

	"github.com/ebbline/ebb/producer/events"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/outcome"
	"github.com/ebbline/ebb/producer/postgres"
	"github.com/ebbline/ebb/schemas"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ postgres.Encoder = (*events.Codec)(nil)
	_ outcome.Decoder  = (*events.Codec)(nil)
)

type bundle struct {
	codec    *events.Codec
	contract *schemas.Codec
	client   *schemas.Client
	down     *atomic.Bool
}

func setup(t *testing.T) bundle {
	t.Helper()
	down := new(atomic.Bool)
	registry := srfake.NewRegistry()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		registry.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{server.URL}, UnknownFor: -1})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	contract := schemas.NewCodec(client)
	return bundle{codec: events.New(contract), contract: contract, client: client, down: down}
}

func registered(t *testing.T) bundle {
	t.Helper()
	b := setup(t)
	_, err := b.client.Register(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.client.Warm(t.Context()))
	return b
}

var at = time.Date(2026, 3, 1, 12, 30, 15, 123456000, time.UTC)

func (b bundle) json(t *testing.T, payload []byte, err error) string {
	t.Helper()
	require.NoError(t, err)
	require.Zero(t, payload[0])
	decoded, err := b.contract.Decode(t.Context(), payload)
	require.NoError(t, err)
	return string(decoded.JSON)
}

func TestEncode(t *testing.T) {
	t.Parallel()
	b := registered(t)
	b.down.Store(true) // warm: no encoding needs the registry
	for _, tt := range []struct {
		text, currency string
		scale          int
		want           string
	}{
		{"99.90", "EUR", 2, "99.90"},
		{"900719925474099.31", "EUR", 2, "900719925474099.31"},
		{"1000", "JPY", 0, "1000"},
		{"0.001", "KWD", 3, "0.001"},
	} {
		amount, err := order.ParseAmount(tt.text, tt.scale)
		require.NoError(t, err)
		payload, err := b.codec.EncodeCreated(t.Context(), order.Created{
			OrderID: 1<<62 + 1, CustomerID: "Kundin ü", Amount: amount, Currency: tt.currency,
			ShippingType: order.International, CreatedAt: at,
		})
		require.Equal(t, `{"orderId":4611686018427387905,"customerId":"Kundin ü","totalAmount":`+tt.want+`,"currency":"`+tt.currency+
			`","shippingType":"international","createdAt":"2026-03-01T12:30:15.123456Z"}`, b.json(t, payload, err))
	}
	payload, err := b.codec.EncodeStatusUpdated(t.Context(), order.StatusUpdated{OrderID: 7, OldStatus: order.StatusConfirmed, NewStatus: order.StatusShipped, At: at})
	require.JSONEq(t, `{"orderId":7,"oldStatus":"CONFIRMED","newStatus":"SHIPPED","at":"2026-03-01T12:30:15.123456Z"}`, b.json(t, payload, err))
	payload, err = b.codec.EncodeCancelled(t.Context(), order.Cancelled{OrderID: 7, Version: 3, Reason: "why", At: at})
	require.JSONEq(t, `{"orderId":7,"version":3,"reason":"why","at":"2026-03-01T12:30:15.123456Z"}`, b.json(t, payload, err))
}

func TestDecode(t *testing.T) {
	t.Parallel()
	b := registered(t)
	const id = "0192f0c1-2345-7abc-8def-0123456789ab"
	reason := "billing: no route"
	event := schemas.SagaEvent{SagaID: id, AggregateID: "7", EventType: "OrderCreated", EventRole: "create", Revision: 4, Reason: &reason}
	for kind, value := range map[order.Trigger]any{
		order.SagaCompleted:   schemas.SagaCompleted(event),
		order.SagaCompensated: schemas.SagaCompensated(event),
		order.SagaParked:      schemas.SagaParked(event),
		order.SagaResumed:     schemas.SagaResumed(event),
	} {
		payload, err := b.contract.Encode(t.Context(), value)
		require.NoError(t, err)
		got, err := b.codec.DecodeOutcome(t.Context(), payload)
		require.NoError(t, err)
		require.Equal(t, order.Outcome{OrderID: 7, SagaID: id, Kind: kind, Revision: 4, Reason: reason}, got)
	}
	event.AggregateID = "customer-7"
	payload, err := b.contract.Encode(t.Context(), schemas.SagaCompleted(event))
	require.NoError(t, err)
	got, err := b.codec.DecodeOutcome(t.Context(), payload)
	require.NoError(t, err)
	require.Zero(t, got.OrderID)
}

func TestWhatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	b := registered(t)
	unknown := binary.BigEndian.AppendUint32([]byte{0}, 4711)
	_, err := b.codec.DecodeOutcome(t.Context(), unknown)
	require.ErrorIs(t, err, outcome.ErrLater)

	var unavailable *order.UnavailableError
	final := func(payload []byte) {
		_, err := b.codec.DecodeOutcome(t.Context(), payload)
		require.Error(t, err)
		require.NotErrorIs(t, err, outcome.ErrLater)
		require.False(t, errors.As(err, &unavailable))
	}
	final(nil)
	final([]byte("text"))
	final([]byte(`{"sagaId":"x"}`))
	other, err := b.codec.EncodeCancelled(t.Context(), order.Cancelled{OrderID: 7, Version: 3, At: at})
	require.NoError(t, err)
	final(other)
	final(other[:6])

	b.down.Store(true)
	_, err = b.codec.DecodeOutcome(t.Context(), unknown)
	require.ErrorAs(t, err, &unavailable)
}

func TestContractNotRegistered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.codec.EncodeCancelled(t.Context(), order.Cancelled{OrderID: 7, Version: 3, At: at})
	var unavailable *order.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.ErrorContains(t, err, "ebb schemas apply")
}

// TestNamesAreThoseOfTheContract keeps the columns that the store writes and the
// names that the consumer reads together with the schemas.
func TestNamesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{postgres.TypeCreated, postgres.TypeStatusUpdated, postgres.TypeCancelled} {
		message, ok := schemas.MessageNamed(name)
		require.True(t, ok, name)
		require.Equal(t, postgres.AggregateType, message.AggregateType)
		require.Equal(t, postgres.SchemaVersion, message.Version)
	}
	for _, kind := range []order.Trigger{order.SagaCompleted, order.SagaCompensated, order.SagaParked, order.SagaResumed} {
		message, ok := schemas.MessageNamed(string(kind))
		require.True(t, ok, kind)
		require.Equal(t, schemas.AggregateSaga, message.AggregateType)
	}
}
