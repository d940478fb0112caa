package events

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/outcome"
	"github.com/ebbline/ebb/schemas"
)

// Codec encodes and decodes through a schemas.Codec. It is safe for concurrent
// use.
type Codec struct{ codec *schemas.Codec }

// New returns a Codec.
func New(codec *schemas.Codec) *Codec { return &Codec{codec: codec} }

// EncodeCreated makes the payload of an OrderCreated event.
func (c *Codec) EncodeCreated(ctx context.Context, e order.Created) ([]byte, error) {
	amount, ok := new(big.Rat).SetString(e.Amount.String())
	if !ok {
		return nil, fmt.Errorf("order %d: amount is not a decimal number", e.OrderID)
	}
	return c.encode(ctx, schemas.OrderCreated{
		OrderID: e.OrderID, CustomerID: e.CustomerID, TotalAmount: amount, Currency: e.Currency,
		ShippingType: string(e.ShippingType), CreatedAt: e.CreatedAt,
	})
}

// EncodeStatusUpdated makes the payload of an OrderStatusUpdated event.
func (c *Codec) EncodeStatusUpdated(ctx context.Context, e order.StatusUpdated) ([]byte, error) {
	return c.encode(ctx, schemas.OrderStatusUpdated{
		OrderID: e.OrderID, OldStatus: string(e.OldStatus), NewStatus: string(e.NewStatus), At: e.At,
	})
}

// EncodeCancelled makes the payload of an OrderCancelled event.
func (c *Codec) EncodeCancelled(ctx context.Context, e order.Cancelled) ([]byte, error) {
	return c.encode(ctx, schemas.OrderCancelled{
		OrderID: e.OrderID, Version: e.Version, Reason: schemas.NullableText(e.Reason), At: e.At,
	})
}

func (c *Codec) encode(ctx context.Context, event any) ([]byte, error) {
	payload, err := c.codec.Encode(ctx, event)
	return payload, classify(err)
}

// DecodeOutcome reads a saga event. A saga of an aggregate that is no order of
// this service has OrderID 0, which no order has.
func (c *Codec) DecodeOutcome(ctx context.Context, value []byte) (order.Outcome, error) {
	message, err := c.codec.DecodeMessage(ctx, value)
	if err != nil {
		return order.Outcome{}, classify(err)
	}
	event, eventType, ok := schemas.AsSagaEvent(message)
	if !ok {
		return order.Outcome{}, fmt.Errorf("the value is not a saga event but %T", message)
	}
	id, err := strconv.ParseInt(event.AggregateID, 10, 64)
	if err != nil {
		id = 0
	}
	return order.Outcome{
		OrderID: id, SagaID: strings.ToLower(event.SagaID), Kind: order.Trigger(eventType),
		Revision: event.Revision, Reason: schemas.TextOf(event.Reason),
	}, nil
}

func classify(err error) error {
	var (
		down          *schemas.UnavailableError
		notRegistered *schemas.NotRegisteredError
		unknown       *schemas.UnknownSchemaError
	)
	switch {
	case errors.As(err, &down), errors.As(err, &notRegistered):
		return &order.UnavailableError{Err: err}
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: %w", outcome.ErrLater, err)
	}
	return err
}
