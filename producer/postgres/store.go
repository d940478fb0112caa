package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/internal/failpoint"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/outbox"
)

// Encoder makes the payload bytes of the order events. It is called inside a
// transaction, so it must not wait for anything.
type Encoder interface {
	EncodeCreated(ctx context.Context, event order.Created) ([]byte, error)
	EncodeStatusUpdated(ctx context.Context, event order.StatusUpdated) ([]byte, error)
	EncodeCancelled(ctx context.Context, event order.Cancelled) ([]byte, error)
}

// The fixed columns of an order's events.
const (
	AggregateType = "order"
	SchemaVersion = 1

	TypeCreated       = "OrderCreated"
	TypeStatusUpdated = "OrderStatusUpdated"
	TypeCancelled     = "OrderCancelled"
)

// Config is what a Store needs.
type Config struct {
	// Pool is the database with the schema made by Migrate. Required. The Store
	// does not close it.
	Pool *pgxpool.Pool
	// Encoder makes event payloads. Required.
	Encoder Encoder
	// KeyRetention is how long answers to an Idempotency-Key are kept. Zero: 7
	// days. Not negative.
	KeyRetention time.Duration
	// Logger gets the result of maintenance. Nil: nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	var problems []error
	if c.Pool == nil {
		problems = append(problems, errors.New("missing Pool"))
	}
	if c.Encoder == nil {
		problems = append(problems, errors.New("missing Encoder"))
	}
	if c.KeyRetention < 0 {
		problems = append(problems, fmt.Errorf("negative KeyRetention %s", c.KeyRetention))
	}
	if c.KeyRetention == 0 {
		c.KeyRetention = 7 * 24 * time.Hour
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(problems...); err != nil {
		return c, fmt.Errorf("order store: configuration: %w", err)
	}
	return c, nil
}

// Store is the order service's state. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	encoder Encoder
	keep    time.Duration
	log     *slog.Logger
}

// New checks the configuration and returns a Store. It does not connect.
func New(cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Store{pool: cfg.Pool, encoder: cfg.Encoder, keep: cfg.KeyRetention, log: cfg.Logger}, nil
}

// step names the two failpoints of one kind of transaction.
type step struct{ before, after string }

var (
	createStep  = step{"producer.create.before_commit", "producer.create.after_commit"}
	statusStep  = step{"producer.status.before_commit", "producer.status.after_commit"}
	cancelStep  = step{"producer.cancel.before_commit", "producer.cancel.after_commit"}
	deleteStep  = step{"producer.delete.before_commit", "producer.delete.after_commit"}
	outcomeStep = step{"producer.outcome.before_commit", "producer.outcome.after_commit"}
)

// endContext is for commit and rollback: a client that goes away must neither
// cut a commit in half nor cost the pool a connection.
func endContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
}

// inTx runs work in a READ COMMITTED transaction and commits it if work
// succeeds. It takes as few round trips as there are questions: BEGIN goes with
// the first of them, which ask queues, and what is only to be written, which
// work queues, goes with COMMIT.
func (s *Store) inTx(ctx context.Context, at step, ask func(*pgx.Batch), work func(tx pgx.Tx, last *pgx.Batch) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return classify(fmt.Errorf("begin: %w", err))
	}
	defer conn.Release()
	first, last := &pgx.Batch{}, &pgx.Batch{}
	first.BeginTx(pgx.TxOptions{})
	ask(first)
	results := conn.SendBatch(ctx, first)
	tx := results.Tx()
	if err = results.Close(); err == nil {
		err = work(tx, last)
	}
	err = classify(err)
	if err == nil {
		err = failpoint.Hit(at.before)
	}
	end, cancel := endContext(ctx)
	defer cancel()
	if err != nil {
		_ = tx.Rollback(end)
		return err
	}
	if err := commit(end, tx, last); err != nil {
		_ = tx.Rollback(end)
		return err
	}
	return failpoint.Hit(at.after)
}

// commit writes what is left and ends the transaction. What the server says
// about a statement before COMMIT, it says of a transaction that has not ended.
func commit(ctx context.Context, tx pgx.Tx, last *pgx.Batch) error {
	before := last.Len()
	last.Queue("COMMIT")
	results := tx.SendBatch(ctx, last)
	defer results.Close()
	for range before {
		if _, err := results.Exec(); err != nil {
			var pg *pgconn.PgError
			if errors.As(err, &pg) {
				return classify(err)
			}
			return classifyCommit(err)
		}
	}
	if _, err := results.Exec(); err != nil {
		return classifyCommit(err)
	}
	return nil
}

// change is the body of a client's call.
type change struct {
	// ask queues its first question, which the database answers before then is
	// called.
	ask func(*pgx.Batch)
	// then returns the order as it is then, and whether it has changed. What is
	// only to be written goes into last.
	then func(ctx context.Context, tx pgx.Tx, last *pgx.Batch) (order.Order, bool, error)
}

// call runs a client's change once per Idempotency-Key.
func (s *Store) call(ctx context.Context, at step, r order.Request, do change) (order.Result, error) {
	var result order.Result
	ask, taken := do.ask, false
	if r.Key != "" {
		ask = func(b *pgx.Batch) { queueKey(b, r, &taken) }
	}
	err := s.inTx(ctx, at, ask, func(tx pgx.Tx, last *pgx.Batch) error {
		if r.Key != "" {
			first, err := answeredBefore(ctx, tx, r, taken)
			if err != nil {
				return err
			}
			if first != nil {
				result = *first
				return nil
			}
			question := &pgx.Batch{}
			do.ask(question)
			if err := tx.SendBatch(ctx, question).Close(); err != nil {
				return err
			}
		}
		o, changed, err := do.then(ctx, tx, last)
		if err != nil {
			return err
		}
		result = order.Result{Order: o, Changed: changed}
		if r.Respond != nil {
			result.Response = r.Respond(o)
		}
		queueResponse(last, r, result)
		return nil
	})
	if err != nil {
		return order.Result{}, err
	}
	return result, nil
}

// publish queues the event.
func publish(last *pgx.Batch, e outbox.Event) error {
	sql, args, err := outbox.Table{}.Insert(e)
	if err != nil {
		return err
	}
	last.Queue(sql, args...)
	return nil
}

// Create stores a new order and its OrderCreated event.
//
// Errors: *order.InvalidError, order.ErrKeyReused, *order.UnavailableError.
func (s *Store) Create(ctx context.Context, n order.New, r order.Request) (order.Result, error) {
	if err := n.Validate(); err != nil {
		return order.Result{}, err
	}
	var o order.Order
	ask := func(b *pgx.Batch) { queueOrder(b, n, &o) }
	return s.call(ctx, createStep, r, change{ask, func(ctx context.Context, _ pgx.Tx, last *pgx.Batch) (order.Order, bool, error) {
		payload, err := s.encoder.EncodeCreated(ctx, o.Created())
		if err != nil {
			return o, false, fmt.Errorf("encode %s: %w", TypeCreated, err)
		}
		id, err := parseEventID(o.CreatedEvent)
		if err != nil {
			return o, false, err
		}
		e := eventOf(o, r, TypeCreated, payload)
		e.ID = id
		return o, true, publish(last, e)
	}})
}

// UpdateStatus moves an order to SHIPPED or DELIVERED and writes its
// OrderStatusUpdated event; an order that is there already stays as it is.
//
// Errors: *order.InvalidError for any other status, *order.NotFoundError,
// *order.TransitionError, order.ErrKeyReused, *order.UnavailableError.
func (s *Store) UpdateStatus(ctx context.Context, id int64, to order.Status, r order.Request) (order.Result, error) {
	trigger, err := order.CommandFor(to)
	if err != nil {
		return order.Result{}, err
	}
	return s.call(ctx, statusStep, r, s.command(id, trigger, r, func(ctx context.Context, before, after order.Order) (string, []byte, error) {
		payload, err := s.encoder.EncodeStatusUpdated(ctx, order.StatusUpdated{
			OrderID: id, OldStatus: before.Status, NewStatus: after.Status, At: after.UpdatedAt,
		})
		return TypeStatusUpdated, payload, err
	}))
}

// Cancel moves an order to CANCELLING and writes its OrderCancelled event; an
// order that is CANCELLING or CANCELLED stays as it is.
//
// Errors: as UpdateStatus; *order.InvalidError for a bad reason.
func (s *Store) Cancel(ctx context.Context, id int64, reason string, r order.Request) (order.Result, error) {
	if err := order.CheckReason(reason); err != nil {
		return order.Result{}, err
	}
	return s.call(ctx, cancelStep, r, s.command(id, order.Cancel, r, func(ctx context.Context, _, after order.Order) (string, []byte, error) {
		payload, err := s.encoder.EncodeCancelled(ctx, order.Cancelled{
			OrderID: id, Version: after.Version, Reason: reason, At: after.UpdatedAt,
		})
		return TypeCancelled, payload, err
	}))
}

// command locks the order, asks the status machine, and stores what it says.
func (s *Store) command(id int64, t order.Trigger, r order.Request,
	encode func(ctx context.Context, before, after order.Order) (eventType string, payload []byte, err error),
) change {
	var before order.Order
	ask := func(b *pgx.Batch) { queueLock(b, id, &before) }
	return change{ask, func(ctx context.Context, tx pgx.Tx, last *pgx.Batch) (order.Order, bool, error) {
		after, changed, err := before.Command(t)
		if err != nil || !changed {
			return after, false, err
		}
		if after.UpdatedAt, err = storeStatus(ctx, tx, after); err != nil {
			return after, false, err
		}
		eventType, payload, err := encode(ctx, before, after)
		if err != nil {
			return after, false, fmt.Errorf("encode %s: %w", eventType, err)
		}
		return after, true, publish(last, eventOf(after, r, eventType, payload))
	}}
}

func eventOf(o order.Order, r order.Request, eventType string, payload []byte) outbox.Event {
	return outbox.Event{
		AggregateType: AggregateType, AggregateID: o.Number(), Type: eventType, Payload: payload,
		Version: o.Version, SchemaVersion: SchemaVersion, TraceParent: r.TraceParent,
	}
}

// SoftDelete hides an order whose story has ended. Its row, its events and its
// saga stay.
//
// Errors: *order.NotFoundError, *order.OpenError, *order.UnavailableError.
func (s *Store) SoftDelete(ctx context.Context, id int64) error {
	var o order.Order
	ask := func(b *pgx.Batch) { queueLock(b, id, &o) }
	return s.inTx(ctx, deleteStep, ask, func(_ pgx.Tx, last *pgx.Batch) error {
		if err := o.Deletable(); err != nil {
			return err
		}
		last.Queue(`UPDATE orders.orders SET deleted_at = clock_timestamp(), updated_at = clock_timestamp() WHERE id = $1`, id)
		return nil
	})
}

// Get returns one order, or *order.NotFoundError.
func (s *Store) Get(ctx context.Context, id int64) (order.Order, error) {
	o, err := readOrder(ctx, s.pool, id)
	return o, classify(err)
}

// List returns orders from the newest down, and the Before of the next page, 0
// at the end. Deleted orders are left out.
func (s *Store) List(ctx context.Context, f order.Filter) ([]order.Order, int64, error) {
	limit := f.Limit
	switch {
	case limit == 0:
		limit = order.DefaultLimit
	case limit < 0 || limit > order.MaxLimit:
		return nil, 0, &order.InvalidError{Problems: []order.Problem{{Field: "limit", Detail: fmt.Sprintf("must be 1 to %d", order.MaxLimit)}}}
	}
	found, err := listOrders(ctx, s.pool, f, limit+1)
	if err != nil {
		return nil, 0, classify(err)
	}
	if len(found) <= limit {
		return found, 0, nil
	}
	return found[:limit], found[limit-1].ID, nil
}
