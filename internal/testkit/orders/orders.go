// Package orders stands in, in tests of the order service, for what Avro and the registry give it.
package orders

import (
	"context"
	"encoding/json"

	"github.com/ebbline/ebb/producer/order"
)

// Encoder writes events as JSON. Fail makes every encoding fail.
type Encoder struct{ Fail error }

// EncodeCreated makes the payload of an OrderCreated event.
func (e Encoder) EncodeCreated(_ context.Context, v order.Created) ([]byte, error) {
	return e.encode(v)
}

// EncodeStatusUpdated makes the payload of an OrderStatusUpdated event.
func (e Encoder) EncodeStatusUpdated(_ context.Context, v order.StatusUpdated) ([]byte, error) {
	return e.encode(v)
}

// EncodeCancelled makes the payload of an OrderCancelled event.
func (e Encoder) EncodeCancelled(_ context.Context, v order.Cancelled) ([]byte, error) {
	return e.encode(v)
}

func (e Encoder) encode(v any) ([]byte, error) {
	if e.Fail != nil {
		return nil, e.Fail
	}
	return json.Marshal(v)
}

// Scale knows the decimals of three currencies, one of each number, and no other one.
func Scale(code string) (int, bool) {
	n, ok := map[string]int{"EUR": 2, "JPY": 0, "KWD": 3}[code]
	return n, ok
}
