package schemas_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/ebbline/ebb/schemas"
)

func BenchmarkCodec(b *testing.B) {
	registry := srfake.New()
	b.Cleanup(registry.Close)
	client, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{registry.URL()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	if _, err := client.Register(b.Context()); err != nil {
		b.Fatal(err)
	}
	codec := schemas.NewCodec(client)
	amount, err := schemas.ParseAmount("12345678.90", "USD")
	if err != nil {
		b.Fatal(err)
	}
	order := &schemas.OrderCreated{OrderID: 1, CustomerID: "customer-123", TotalAmount: amount, Currency: "USD", ShippingType: "domestic", CreatedAt: at}
	payload, err := codec.Encode(b.Context(), order)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = codec.Encode(b.Context(), order)
		}
	})
	b.Run("decode to JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = codec.Decode(b.Context(), payload)
		}
	})
	b.Run("decode into type", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = schemas.DecodeInto[schemas.OrderCreated](b.Context(), codec, payload)
		}
	})
}
