package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/orders"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/postgres"
)

func BenchmarkCreate(b *testing.B) {
	dsn := testkit.DB(b)
	require.NoError(b, postgres.Migrate(b.Context(), dsn))
	store, err := postgres.New(postgres.Config{Pool: testkit.Pool(b, dsn), Encoder: orders.Encoder{}})
	require.NoError(b, err)
	amount, err := order.ParseAmount("99.90", 2)
	require.NoError(b, err)
	n := order.New{CustomerID: "customer-1", Amount: amount, Currency: "EUR", ShippingType: order.Domestic}
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := store.Create(b.Context(), n, order.Request{}); err != nil {
				b.Error(err)
			}
		}
	})
}
