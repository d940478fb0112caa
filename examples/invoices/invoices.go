// Package invoices is a service of your own: it has its own tables, and tells what happens there through an outbox of its own.
//
// An invoice and its event InvoiceIssued commit together or not at all; nothing here knows Kafka. The event's payload is plain JSON, its
// aggregate type is "invoice", so that its topic is outbox.event.invoice.
package invoices

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/producer/outbox"
)

// What other programs have to know.
const (
	AggregateType = "invoice"
	EventIssued   = "InvoiceIssued"
)

// Outbox is the service's own; `ebb migrate --outbox invoices.outbox` publishes it.
var Outbox = outbox.Table{Schema: "invoices", Name: "outbox"}

//go:embed schema.sql
var schema string

// Migrate makes the tables; repeating it changes nothing.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, schema); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
		if _, err := tx.Exec(ctx, Outbox.DDL()); err != nil {
			return fmt.Errorf("make the outbox: %w", err)
		}
		return nil
	})
}

// Invoice is one to be issued.
type Invoice struct {
	Customer string
	// Total is a decimal such as 99.90: money never is a float.
	Total    json.Number
	Currency string
}

// Issued is the payload of the event InvoiceIssued.
type Issued struct {
	InvoiceID string      `json:"invoiceId"`
	Customer  string      `json:"customer"`
	Total     json.Number `json:"total"`
	Currency  string      `json:"currency"`
}

var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})(\.[0-9]{1,4})?$`)

// Issue writes the invoice and its event in one transaction, and gives the invoice's id.
func Issue(ctx context.Context, pool *pgxpool.Pool, in Invoice) (id string, err error) {
	if in.Customer == "" || !decimal.MatchString(in.Total.String()) || len(in.Currency) != 3 {
		return "", errors.New("an invoice needs a customer, a total such as 99.90, and a currency of 3 letters")
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		const sql = `INSERT INTO invoices.invoices (customer, total, currency) VALUES ($1, $2::text::numeric, $3) RETURNING 'INV-' || id`
		if err := tx.QueryRow(ctx, sql, in.Customer, in.Total.String(), in.Currency).Scan(&id); err != nil {
			return err
		}
		payload, err := json.Marshal(Issued{InvoiceID: id, Customer: in.Customer, Total: in.Total, Currency: in.Currency})
		if err != nil {
			return err
		}
		_, err = Outbox.Write(ctx, tx, outbox.Event{
			AggregateType: AggregateType, AggregateID: id, Type: EventIssued, Payload: payload, Version: 1, SchemaVersion: 1,
		})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("issue an invoice: %w", err)
	}
	return id, nil
}
