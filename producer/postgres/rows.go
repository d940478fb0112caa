package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/ebbline/ebb/producer/order"
)

// columns of orders.orders, as scanOrder reads them. The amount travels as text:
// it must not meet a float.
const columns = `id, customer_id, round(total_amount, amount_scale)::text, amount_scale, currency, shipping_type, status,
	coalesce(attention, ''), version, created_event::text, saga_revision, created_at, updated_at, deleted_at`

func scanOrder(row pgx.CollectableRow) (order.Order, error) {
	var (
		o      order.Order
		amount string
		scale  int
	)
	err := row.Scan(&o.ID, &o.CustomerID, &amount, &scale, &o.Currency, &o.ShippingType, &o.Status,
		&o.Attention, &o.Version, &o.CreatedEvent, &o.SagaRevision, &o.CreatedAt, &o.UpdatedAt, &o.DeletedAt)
	if err != nil {
		return o, err
	}
	if o.Amount, err = order.ParseAmount(amount, scale); err != nil {
		return o, fmt.Errorf("order %d: %w", o.ID, err)
	}
	o.CreatedAt, o.UpdatedAt = o.CreatedAt.UTC(), o.UpdatedAt.UTC()
	if o.DeletedAt != nil {
		*o.DeletedAt = o.DeletedAt.UTC()
	}
	return o, nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func insertOrder(ctx context.Context, tx pgx.Tx, n order.New) (order.Order, error) {
	rows, err := tx.Query(ctx, `INSERT INTO orders.orders (customer_id, total_amount, amount_scale, currency, shipping_type)
		VALUES ($1, $2::text::numeric, $3, $4, $5) RETURNING `+columns,
		n.CustomerID, n.Amount.String(), n.Amount.Scale(), n.Currency, string(n.ShippingType))
	if err != nil {
		return order.Order{}, fmt.Errorf("insert order: %w", err)
	}
	o, err := pgx.CollectExactlyOneRow(rows, scanOrder)
	if err != nil {
		return o, fmt.Errorf("insert order: %w", err)
	}
	return o, nil
}

func lockOrder(ctx context.Context, tx pgx.Tx, id int64) (order.Order, error) {
	return oneOrder(ctx, tx, id, " FOR UPDATE")
}

func oneOrder(ctx context.Context, db querier, id int64, lock string) (order.Order, error) {
	rows, err := db.Query(ctx, `SELECT `+columns+` FROM orders.orders WHERE id = $1 AND deleted_at IS NULL`+lock, id)
	if err != nil {
		return order.Order{}, fmt.Errorf("read order %d: %w", id, err)
	}
	o, err := pgx.CollectExactlyOneRow(rows, scanOrder)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, &order.NotFoundError{OrderID: id}
	}
	if err != nil {
		return o, fmt.Errorf("read order %d: %w", id, err)
	}
	return o, nil
}

// storeStatus returns when the change happened: never before the one before it,
// should the server's clock have been set back.
func storeStatus(ctx context.Context, tx pgx.Tx, o order.Order) (time.Time, error) {
	var at time.Time
	err := tx.QueryRow(ctx, `UPDATE orders.orders SET status = $2, version = $3, updated_at = greatest(clock_timestamp(), updated_at)
		WHERE id = $1 RETURNING updated_at`, o.ID, string(o.Status), o.Version).Scan(&at)
	if err != nil {
		return at, fmt.Errorf("update order %d: %w", o.ID, err)
	}
	return at.UTC(), nil
}

func listOrders(ctx context.Context, db querier, f order.Filter, limit int) ([]order.Order, error) {
	sql := `SELECT ` + columns + ` FROM orders.orders WHERE deleted_at IS NULL`
	var args []any
	where := func(condition string, value any) {
		args = append(args, value)
		sql += fmt.Sprintf(" AND "+condition, len(args))
	}
	if f.Before > 0 {
		where("id < $%d", f.Before)
	}
	if f.Status != "" {
		where("status = $%d", string(f.Status))
	}
	if f.CustomerID != "" {
		where("customer_id = $%d", f.CustomerID)
	}
	if f.Attention {
		sql += " AND attention IS NOT NULL"
	}
	args = append(args, limit)
	sql += fmt.Sprintf(" ORDER BY id DESC LIMIT $%d", len(args))
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list orders: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanOrder)
	if err != nil {
		return nil, fmt.Errorf("list orders: %w", err)
	}
	return found, nil
}

// claimKey takes the request's key for this transaction. If the key has been
// used, it returns the answer of then. While another transaction holds the key,
// the INSERT waits for its end.
func claimKey(ctx context.Context, tx pgx.Tx, r order.Request) (*order.Result, error) {
	if r.Key == "" {
		return nil, nil
	}
	for {
		tag, err := tx.Exec(ctx, `INSERT INTO orders.request_keys (key, request_hash) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`, r.Key, r.Hash[:])
		if err != nil {
			return nil, fmt.Errorf("claim request key: %w", err)
		}
		if tag.RowsAffected() == 1 {
			return nil, nil
		}
		first, err := firstResponse(ctx, tx, r)
		if errors.Is(err, pgx.ErrNoRows) {
			continue // purged between the two statements: the key is free again
		}
		return first, err
	}
}

func firstResponse(ctx context.Context, tx pgx.Tx, r order.Request) (*order.Result, error) {
	var (
		hash  []byte
		first = order.Result{Replayed: true}
	)
	// A row that can be seen is complete: both statements are of one transaction.
	err := tx.QueryRow(ctx, `SELECT request_hash, order_id, response_status, response_body FROM orders.request_keys WHERE key = $1`, r.Key).
		Scan(&hash, &first.Order.ID, &first.Response.Status, &first.Response.Body)
	if err != nil {
		return nil, fmt.Errorf("read request key: %w", err)
	}
	if string(hash) != string(r.Hash[:]) {
		return nil, order.ErrKeyReused
	}
	return &first, nil
}

func storeResponse(ctx context.Context, tx pgx.Tx, r order.Request, result order.Result) error {
	if r.Key == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE orders.request_keys SET order_id = $2, response_status = $3, response_body = $4 WHERE key = $1`,
		r.Key, result.Order.ID, result.Response.Status, result.Response.Body)
	if err != nil {
		return fmt.Errorf("store the answer of a request key: %w", err)
	}
	return nil
}

func parseEventID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return id, fmt.Errorf("event id of a stored order: %w", err)
	}
	return id, nil
}
