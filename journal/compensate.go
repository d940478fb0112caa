package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ebbline/ebb/journal/saga"
)

// Signal is a record that the compensator takes in. Exactly one of Cancel, Begin, DeadLetter and Skip is set.
type Signal struct {
	Position
	Cancel     *Cancel
	Begin      *Begin
	DeadLetter *DeadLetter
	Skip       bool
}

// Cancel is a cancel event: events of the aggregate below its version are undone, or never done.
type Cancel struct {
	Event     saga.ID
	Aggregate Key
	Version   int64
	Reason    string
}

// Begin asks for the unwinding of a FAILING saga.
type Begin struct {
	Saga saga.ID
	// Fresh says that the request is so young that its saga may not be visible yet: PostgreSQL streams a commit before it shows it.
	Fresh bool
}

// ErrNotVisible is returned by Compensate for a fresh request whose saga cannot be seen yet; the call is to be repeated.
var ErrNotVisible = errors.New("the saga of a compensation request is not visible yet")

// Compensate takes in the signals of a poll in one transaction, in order, with the offset behind them (G2). Repeating it changes
// nothing (G11).
func (s *Store) Compensate(ctx context.Context, r Reader, signals []Signal) error {
	owners, err := s.aggregatesOf(ctx, begins(signals))
	if err != nil {
		return fmt.Errorf("compensate: %w", err)
	}
	var needs []need
	for _, sig := range signals {
		if sig.Cancel != nil {
			needs = append(needs, need{key: sig.Cancel.Aggregate, from: wholeHistory})
		}
	}
	for v, k := range owners {
		needs = append(needs, about(k, v))
	}
	return s.transact(ctx, "compensate", needs, func(u *unit) error {
		records := make([]Record, len(signals))
		for i, sig := range signals {
			records[i] = Record{Position: sig.Position}
			if err := u.signal(ctx, r, sig, owners); err != nil {
				return err
			}
		}
		u.rows.advance(r, records)
		return nil
	})
}

func begins(signals []Signal) []saga.ID {
	var ids []saga.ID
	for _, sig := range signals {
		if sig.Begin != nil {
			ids = append(ids, sig.Begin.Saga)
		}
	}
	return ids
}

// signal applies one signal. A request for a saga that is not there is passed over: either the journal has been restored since, or the
// transaction that made the saga and published the request is in the WAL, and so in Kafka, a moment before other sessions see it.
// Then Sweep finds the saga.
func (u *unit) signal(ctx context.Context, r Reader, sig Signal, owners map[saga.ID]Key) error {
	switch {
	case sig.DeadLetter != nil:
		u.rows.letter(r, Record{Position: sig.Position, DeadLetter: sig.DeadLetter})
	case sig.Cancel != nil:
		c := sig.Cancel
		l := u.aggs[c.Aggregate]
		if l.err != nil {
			return l.err
		}
		u.in("cancel")
		l.agg.Cancel(u.env, c.Version, c.Reason)
		u.entomb(c)
	case sig.Begin != nil:
		key, known := owners[sig.Begin.Saga]
		if !known && sig.Begin.Fresh {
			return ErrNotVisible
		}
		if !known {
			return nil
		}
		l := u.aggs[key]
		if l.err != nil {
			return l.err
		}
		u.in("begin")
		if s := l.agg.Find(sig.Begin.Saga); s != nil && s.State != saga.Failing {
			u.store.log.DebugContext(ctx, "compensation was asked for again", "saga", s.ID.String(), "state", s.State.String())
		}
		l.agg.Begin(u.env, sig.Begin.Saga)
	}
	return nil
}

// entomb keeps the latest cancel of each aggregate: one statement cannot upsert a row twice.
func (u *unit) entomb(c *Cancel) {
	if u.tombs == nil {
		u.tombs = map[Key]*Cancel{}
	}
	if had := u.tombs[c.Aggregate]; had == nil || had.Version < c.Version {
		u.tombs[c.Aggregate] = c
	}
}

func (r *rows) tombstone(c *Cancel) {
	r.tombstones.add(val(c.Aggregate.Type), val(c.Aggregate.ID), val(c.Version), id(c.Event), text(c.Reason))
}

// aggregatesOf finds the aggregates of sagas.
func (s *Store) aggregatesOf(ctx context.Context, ids []saga.ID) (map[saga.ID]Key, error) {
	out := map[saga.ID]Key{}
	if len(ids) == 0 {
		return out, nil
	}
	list := make([]pgtype.UUID, len(ids))
	for i, v := range ids {
		list[i] = pgtype.UUID{Bytes: v, Valid: true}
	}
	rows, err := s.pool.Query(ctx, "SELECT id, aggregate_type, aggregate_id FROM ebb.sagas WHERE id = ANY ($1::uuid[])", list)
	if err != nil {
		return nil, err
	}
	var v saga.ID
	var k Key
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&v), &k.Type, &k.ID}, func() error {
		out[v] = k
		return nil
	})
	return out, err
}

// Swept counts what a Sweep found.
type Swept struct {
	Begun int // FAILING sagas whose message was late
	Aged  int // sagas that got attention because a group has not read their event
}

const (
	lateFailingSQL = `SELECT id FROM ebb.sagas WHERE state = 'FAILING' AND failing_since < statement_timestamp() - $1::interval
ORDER BY failing_since LIMIT $2`
	unreadSQL = `SELECT DISTINCT s.id FROM ebb.steps t JOIN ebb.sagas s ON s.id = t.saga_id
WHERE t.state = 'EXPECTED' AND t.expect_by < statement_timestamp() AND s.attention = '' LIMIT $1`
)

// Sweep moves what waits for a message that is late: FAILING sagas after the given time, and deadlines that have passed. It is the
// second way for what Kafka may delay or lose, so that no saga depends on a message (G9).
func (s *Store) Sweep(ctx context.Context, failingFor time.Duration, limit int) (Swept, error) {
	var got Swept
	late, err := s.sagaIDs(ctx, lateFailingSQL, failingFor, limit)
	if err != nil {
		return got, fmt.Errorf("sweep: %w", err)
	}
	unread, err := s.sagaIDs(ctx, unreadSQL, limit)
	if err != nil {
		return got, fmt.Errorf("sweep: %w", err)
	}
	if len(late)+len(unread) == 0 {
		return got, nil
	}
	owners, err := s.aggregatesOf(ctx, append(append([]saga.ID(nil), late...), unread...))
	if err != nil {
		return got, fmt.Errorf("sweep: %w", err)
	}
	needs := make([]need, 0, len(owners))
	for v, k := range owners {
		needs = append(needs, about(k, v))
	}
	err = s.transact(ctx, "sweep", needs, func(u *unit) error {
		for _, v := range late {
			if l := u.aggs[owners[v]]; l != nil && l.err == nil {
				l.agg.Begin(u.env, v)
				got.Begun++
			}
		}
		for _, v := range unread {
			if l := u.aggs[owners[v]]; l != nil && l.err == nil {
				l.agg.Touch(u.env)
				got.Aged++
			}
		}
		return nil
	})
	return got, err
}

func (s *Store) sagaIDs(ctx context.Context, sql string, args ...any) ([]saga.ID, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (v saga.ID, err error) {
		return v, row.Scan((*[16]byte)(&v))
	})
}
