// Command invoices is the service: `invoices migrate` makes its tables, `invoices issue CUSTOMER TOTAL CURRENCY` issues an invoice.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/consumers/handler"

	"example.com/invoicing/invoices"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "invoices:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	where, err := handler.FromEnv()
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, where.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	switch {
	case len(args) == 1 && args[0] == "migrate":
		return invoices.Migrate(ctx, pool)
	case len(args) == 4 && args[0] == "issue":
		id, err := invoices.Issue(ctx, pool, invoices.Invoice{Customer: args[1], Total: json.Number(args[2]), Currency: args[3]})
		if err == nil {
			fmt.Println(id)
		}
		return err
	}
	return errors.New("use: invoices migrate | invoices issue CUSTOMER TOTAL CURRENCY")
}
