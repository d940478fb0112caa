package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

func queueOrder(b *pgx.Batch, n order.New, o *order.Order) {
	b.Queue(`INSERT INTO orders.orders (customer_id, total_amount, amount_scale, currency, shipping_type)
		VALUES ($1, $2::text::numeric, $3, $4, $5) RETURNING `+columns,
		n.CustomerID, n.Amount.String(), n.Amount.Scale(), n.Currency, string(n.ShippingType)).Query(func(rows pgx.Rows) (err error) {
		if *o, err = pgx.CollectExactlyOneRow(rows, scanOrder); err != nil {
			return fmt.Errorf("insert order: %w", err)
		}
		return nil
	})
}

const oneOrderSQL = `SELECT ` + columns + ` FROM orders.orders WHERE id = $1 AND deleted_at IS NULL`

func queueLock(b *pgx.Batch, id int64, o *order.Order) {
	b.Queue(oneOrderSQL+` FOR UPDATE`, id).Query(func(rows pgx.Rows) (err error) {
		*o, err = oneOrder(rows, id)
		return err
	})
}

func readOrder(ctx context.Context, db querier, id int64) (order.Order, error) {
	rows, err := db.Query(ctx, oneOrderSQL, id)
	if err != nil {
		return order.Order{}, fmt.Errorf("read order %d: %w", id, err)
	}
	return oneOrder(rows, id)
}

func oneOrder(rows pgx.Rows, id int64) (order.Order, error) {
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

const takeKeySQL = `INSERT INTO orders.request_keys (key, request_hash) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`

// queueKey takes the request's key for this transaction, unless it has been
// used. While another transaction holds the key, it waits for its end.
func queueKey(b *pgx.Batch, r order.Request, taken *bool) {
	b.Queue(takeKeySQL, r.Key, r.Hash[:]).Exec(func(tag pgconn.CommandTag) error {
		*taken = tag.RowsAffected() == 1
		return nil
	})
}

// answeredBefore returns the answer that the key was used for, nil once it is
// taken for this transaction.
func answeredBefore(ctx context.Context, tx pgx.Tx, r order.Request, taken bool) (*order.Result, error) {
	for !taken {
		first, err := firstResponse(ctx, tx, r)
		if !errors.Is(err, pgx.ErrNoRows) {
			return first, err
		}
		// Purged between the two statements: the key is free again.
		tag, err := tx.Exec(ctx, takeKeySQL, r.Key, r.Hash[:])
		if err != nil {
			return nil, fmt.Errorf("claim request key: %w", err)
		}
		taken = tag.RowsAffected() == 1
	}
	return nil, nil
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

func queueResponse(b *pgx.Batch, r order.Request, result order.Result) {
	if r.Key == "" {
		return
	}
	b.Queue(`UPDATE orders.request_keys SET order_id = $2, response_status = $3, response_body = $4 WHERE key = $1`,
		r.Key, result.Order.ID, result.Response.Status, result.Response.Body)
}

func parseEventID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return id, fmt.Errorf("event id of a stored order: %w", err)
	}
	return id, nil
}
