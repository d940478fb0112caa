package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ebbline/ebb/producer/order"
)

// ApplyOutcomes applies saga outcomes in the order given, in one transaction,
// and returns what each of them did, in the same order. Deleted orders take part.
// Applying the same outcomes again gives Stale and changes nothing.
//
// Errors: *order.UnstorableError when the values of an outcome are refused,
// *order.UnavailableError, and others that are faults of the set-up.
func (s *Store) ApplyOutcomes(ctx context.Context, outcomes []order.Outcome) ([]order.Effect, error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	var effects []order.Effect
	orders := make(map[int64]order.Order, len(outcomes))
	ask := func(b *pgx.Batch) { queueLocks(b, outcomes, orders) }
	err := s.inTx(ctx, outcomeStep, ask, func(_ pgx.Tx, last *pgx.Batch) (err error) {
		var changed []int64
		if effects, changed, err = apply(orders, outcomes); err == nil {
			queueOutcomes(last, orders, changed)
		}
		return err
	})
	if refusedValue(err) {
		return nil, &order.UnstorableError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	return effects, nil
}

// apply works on the map and returns the ids of the orders that have changed,
// each once.
func apply(orders map[int64]order.Order, outcomes []order.Outcome) (effects []order.Effect, changed []int64, err error) {
	effects = make([]order.Effect, len(outcomes))
	for i, outcome := range outcomes {
		before, known := orders[outcome.OrderID]
		if !known {
			effects[i] = order.UnknownOrder
			continue
		}
		after, effect, err := before.Apply(outcome)
		if err != nil {
			return nil, nil, err
		}
		effects[i] = effect
		if effect == order.Applied {
			orders[outcome.OrderID] = after
			changed = append(changed, outcome.OrderID)
		}
	}
	slices.Sort(changed)
	return effects, slices.Compact(changed), nil
}

// queueLocks locks in the order of the ids, so that two batches cannot wait for
// each other.
func queueLocks(b *pgx.Batch, outcomes []order.Outcome, orders map[int64]order.Order) {
	ids := make([]int64, len(outcomes))
	for i, outcome := range outcomes {
		ids[i] = outcome.OrderID
	}
	b.Queue(`SELECT `+columns+` FROM orders.orders WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE`, ids).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scanOrder)
		if err != nil {
			return fmt.Errorf("lock orders: %w", err)
		}
		for _, o := range found {
			orders[o.ID] = o
		}
		return nil
	})
}

func queueOutcomes(b *pgx.Batch, orders map[int64]order.Order, changed []int64) {
	if len(changed) == 0 {
		return
	}
	statuses, attentions := make([]string, len(changed)), make([]string, len(changed))
	revisions := make([]int64, len(changed))
	for i, id := range changed {
		o := orders[id]
		statuses[i], attentions[i], revisions[i] = string(o.Status), o.Attention, o.SagaRevision
	}
	b.Queue(`UPDATE orders.orders AS o
		SET status = n.status, attention = nullif(n.attention, ''), saga_revision = n.revision,
			updated_at = greatest(clock_timestamp(), o.updated_at)
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS n (id, status, attention, revision)
		WHERE o.id = n.id`, changed, statuses, attentions, revisions)
}
