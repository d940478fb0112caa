package journal

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ebbline/ebb/journal/saga"
)

const expiredSQL = `SELECT t.saga_id, t.direction, s.aggregate_type, s.aggregate_id, t.epoch, t.attempt, t.worker
FROM ebb.steps t JOIN ebb.sagas s ON s.id = t.saga_id
WHERE t.destination = $1 AND t.state = 'CALLING' AND t.lease_until < statement_timestamp()
ORDER BY t.lease_until LIMIT $2`

// expired is a claim whose lease has run out.
type expired struct {
	Claimed
	worker string
}

// Expire takes claims of the destination from workers whose leases have run out: they may have happened (G3). It returns how many
// there were. Only somebody who has been connected for one lease may call it: after an outage of the database nobody could renew
// or record anything, and the replies are still in memory.
func (s *Store) Expire(ctx context.Context, destination string, limit int) (int, error) {
	rows, err := s.pool.Query(ctx, expiredSQL, destination, limit)
	if err != nil {
		return 0, fmt.Errorf("expire: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e expired, err error) {
		var dir string
		if err := row.Scan((*[16]byte)(&e.Saga), &dir, &e.Aggregate.Type, &e.Aggregate.ID, &e.Epoch, &e.Attempt, &e.worker); err != nil {
			return e, err
		}
		e.Dest = destination
		e.Dir, err = saga.ParseDirection(dir)
		return e, err
	})
	if err != nil {
		return 0, fmt.Errorf("expire: %w", err)
	}
	if len(found) == 0 {
		return 0, nil
	}
	errs, err := each(ctx, s, "expire", found, func(e *expired) *Claimed { return &e.Claimed }, (*unit).expire, nil)
	n := 0
	for _, e := range errs {
		if e == nil {
			n++
		}
	}
	return n, err
}

func (u *unit) expire(e *expired) error {
	err := u.aggs[e.Aggregate].agg.Expire(u.env, e.Saga, e.Dest, e.Dir)
	if err == nil {
		u.lost(e.Claimed, e.worker, "the lease of the worker ran out")
	}
	return err
}
