package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Order is what a client asks for.
type Order struct {
	CustomerID string
	Amount     string // decimal, two digits behind the point
}

// Steps runs orders through the four steps. It is safe for concurrent use.
type Steps struct {
	pool *pgxpool.Pool
	api  *caller
}

// NewSteps makes a loop; workers is how many orders will be in it at once.
func NewSteps(pool *pgxpool.Pool, api string, workers int) *Steps {
	return &Steps{pool: pool, api: newCaller(api, 2*workers)}
}

// Close lets the connections to the API go.
func (s *Steps) Close() { s.api.close() }

// undo gives the request that undoes a step.
type undo func() (method, path string, body []byte)

// done is a step that succeeded.
type done struct {
	destination string
	undo        undo // nil: nothing to undo
}

// Run takes one order from its insert to its end.
func (s *Steps) Run(ctx context.Context, o Order) error {
	var id int64
	err := s.pool.QueryRow(ctx, `INSERT INTO bench.orders (customer_id, total_amount, currency, shipping_type)
VALUES ($1, $2::text::numeric, 'USD', 'domestic') RETURNING id`, o.CustomerID, o.Amount).Scan(&id)
	if err != nil {
		return fmt.Errorf("insert order: %w", err)
	}
	r := &run{steps: s, id: id, order: o}
	confirmed, err := r.forward(ctx)
	if err != nil {
		return fmt.Errorf("order %d: %w", id, err)
	}
	status := "CONFIRMED"
	if !confirmed {
		status = "REJECTED"
		if err := r.unwind(ctx); err != nil {
			return fmt.Errorf("order %d: %w", id, err)
		}
	}
	_, err = s.pool.Exec(ctx, `UPDATE bench.orders SET status = $2, updated_at = clock_timestamp() WHERE id = $1`, id, status)
	if err != nil {
		return fmt.Errorf("end of order %d: %w", id, err)
	}
	return nil
}

// run is one order on its way.
type run struct {
	steps *Steps
	id    int64
	order Order

	mu   sync.Mutex
	done []done // in the order of their ends
}

// forward makes inventory and shipping beside the fraud check, and billing after both. It reports false for a refusal.
func (r *run) forward(ctx context.Context) (bool, error) {
	var fraud bool
	var fraudErr error
	var side sync.WaitGroup
	side.Go(func() {
		fraud, fraudErr = r.do(ctx, "fraudCheck", "/api/fraud/check", nil)
	})
	goods, err := r.goods(ctx)
	side.Wait()
	if err != nil || fraudErr != nil {
		return false, firstError(err, fraudErr)
	}
	if !goods || !fraud {
		return false, nil
	}
	ok, err := r.do(ctx, "billing", "/api/billing", func(reply []byte) undo {
		var b struct{ Transaction struct{ ID string } }
		if json.Unmarshal(reply, &b) != nil {
			return nil
		}
		return func() (method, path string, body []byte) {
			return http.MethodPost, "/api/billing/" + b.Transaction.ID + "/refund",
				fmt.Appendf(nil, `{"transactionId":%q,"amount":%s,"currency":"USD","reason":"order_failed"}`, b.Transaction.ID, r.order.Amount)
		}
	})
	return ok, err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// goods makes inventory, then shipping.
func (r *run) goods(ctx context.Context) (bool, error) {
	ok, err := r.do(ctx, "inventory", "/api/inventory/reserve", func(reply []byte) undo {
		var b struct{ ReservationID string }
		if json.Unmarshal(reply, &b) != nil {
			return nil
		}
		return func() (method, path string, body []byte) {
			return http.MethodDelete, "/api/inventory/" + b.ReservationID + "/release", nil
		}
	})
	if err != nil || !ok {
		return false, err
	}
	ok, err = r.do(ctx, "shipping", "/api/domestic-shipping", func(reply []byte) undo {
		var b struct{ ShipmentID string }
		if json.Unmarshal(reply, &b) != nil {
			return nil
		}
		return func() (method, path string, body []byte) {
			return http.MethodPost, "/api/domestic-shipping/" + b.ShipmentID + "/cancel",
				fmt.Appendf(nil, `{"shipmentId":%q,"orderId":%d,"customerId":%q,"reason":"payment_failed"}`, b.ShipmentID, r.id, r.order.CustomerID)
		}
	})
	return ok, err
}

// do makes one forward step; a success notes how to undo it.
func (r *run) do(ctx context.Context, destination, path string, prepare func(reply []byte) undo) (bool, error) {
	body := fmt.Appendf(nil, `{"orderId":%d,"customerId":%q,"totalAmount":%s,"amount":%s,"currency":"USD","shippingType":"domestic"}`,
		r.id, r.order.CustomerID, r.order.Amount, r.order.Amount)
	reply, err := r.step(ctx, destination, "do", http.MethodPost, path, body)
	if err != nil || !reply.OK() {
		return false, err
	}
	d := done{destination: destination}
	if prepare != nil {
		d.undo = prepare(reply.Body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, d)
	return true, nil
}

// unwind undoes what succeeded, the last first.
func (r *run) unwind(ctx context.Context) error {
	for i := len(r.done) - 1; i >= 0; i-- {
		d := r.done[i]
		if d.undo == nil {
			continue
		}
		method, path, body := d.undo()
		reply, err := r.step(ctx, d.destination, "undo", method, path, body)
		if err != nil {
			return err
		}
		if !reply.OK() {
			return fmt.Errorf("%w: undo at %s gave %d", errUnexpected, d.destination, reply.Status)
		}
	}
	return nil
}

// step commits the intent, makes the call, and commits the result with its audit row.
func (r *run) step(ctx context.Context, destination, direction, method, path string, body []byte) (Reply, error) {
	request := append([]byte(method+" "+path+"\n"), body...)
	_, err := r.steps.pool.Exec(ctx, `INSERT INTO bench.steps (order_id, destination, direction, state, request) VALUES ($1, $2, $3, 'CALLING', $4)`,
		r.id, destination, direction, request)
	if err != nil {
		return Reply{}, fmt.Errorf("intent of %s: %w", destination, err)
	}
	key := "order-" + strconv.FormatInt(r.id, 10) + ":" + destination + ":" + direction
	reply, err := r.steps.api.call(ctx, method, path, key, body)
	if err != nil {
		return reply, fmt.Errorf("call of %s: %w", destination, err)
	}
	state := "SUCCEEDED"
	if !reply.OK() {
		state = "REFUSED"
	}
	// Without BEGIN, a batch is one transaction and one round trip.
	b := &pgx.Batch{}
	b.Queue(`UPDATE bench.steps SET state = $4, response = $5, updated_at = clock_timestamp()
WHERE order_id = $1 AND destination = $2 AND direction = $3`, r.id, destination, direction, state, reply.Body)
	b.Queue(`INSERT INTO bench.calls (order_id, destination, direction, status, reply, started_at, duration_us) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		r.id, destination, direction, reply.Status, reply.Body, reply.Started, reply.Took.Microseconds())
	if err := r.steps.pool.SendBatch(ctx, b).Close(); err != nil {
		return reply, fmt.Errorf("result of %s: %w", destination, err)
	}
	return reply, nil
}
