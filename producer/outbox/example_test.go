package outbox_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/producer/outbox"
)

// The event is written in the transaction of the change it speaks of.
func ExampleTable_Write() {
	events := outbox.Table{Schema: "crm", Name: "outbox"}
	rename := func(ctx context.Context, pool *pgxpool.Pool, customer int64, name string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			var version int64
			err := tx.QueryRow(ctx, "UPDATE crm.customers SET name = $2, version = version + 1 WHERE id = $1 RETURNING version", customer, name).Scan(&version)
			if err != nil {
				return err
			}
			_, err = events.Write(ctx, tx, outbox.Event{
				AggregateType: "customer", AggregateID: fmt.Sprint(customer), Type: "CustomerRenamed",
				Payload: fmt.Appendf(nil, `{"name":%q}`, name), Version: version, SchemaVersion: 1,
			})
			return err
		})
	}
	_ = rename
}
