package journal

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ebbline/ebb/journal/saga"
)

// load is what the load statements of a unit bring, before it is put together.
type load struct {
	now      pgtype.Timestamptz
	revision int64
	sagas    []loadedSaga
	steps    []loadedStep
	tombs    []loadedTombstone
}

type loadedSaga struct {
	key  Key
	saga *saga.Saga
}

type loadedStep struct {
	sagaID saga.ID
	step   *saga.Step
}

type loadedTombstone struct {
	key     Key
	version int64
}

const (
	nowSQL = "SELECT clock_timestamp(), (SELECT count(*) FROM ebb.destinations)"

	sagasSQL = `SELECT s.aggregate_type, s.aggregate_id, s.id, s.event_type, s.role, s.aggregate_version, s.state, s.revision,
	s.attention, s.reason, s.cancel_version, s.failing_since
FROM unnest($1::text[], $2::text[]) AS k (t, i)
JOIN ebb.sagas s ON s.aggregate_type = k.t AND s.aggregate_id = k.i`

	stepColumns = `t.saga_id, t.destination, t.direction, t.state, t.maybe, t.attempt, t.epoch, t.worker, t.lease_until,
	t.next_attempt_at, t.first_attempt_at, t.first_sent_at, t.expect_by, t.seq, t.spec_version, t.late, t.superseded, t.outage, t.revert, t.outcome, t.reason`

	stepsSQL = `SELECT ` + stepColumns + `
FROM unnest($1::text[], $2::text[]) AS k (t, i)
JOIN ebb.sagas s ON s.aggregate_type = k.t AND s.aggregate_id = k.i
JOIN ebb.steps t ON t.saga_id = s.id
ORDER BY t.saga_id, t.place`

	tombstonesSQL = `SELECT d.aggregate_type, d.aggregate_id, d.version
FROM unnest($1::text[], $2::text[]) AS k (t, i)
JOIN ebb.tombstones d ON d.aggregate_type = k.t AND d.aggregate_id = k.i`
)

// queueLoad adds the statements that load the expected aggregates.
func (u *unit) queueLoad(b *pgx.Batch) *load {
	l := &load{}
	b.Queue(nowSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&l.now, &l.revision) })
	if len(u.keys) == 0 {
		return l
	}
	types, ids := make([]string, len(u.keys)), make([]string, len(u.keys))
	for i, k := range u.keys {
		types[i], ids[i] = k.Type, k.ID
	}
	b.Queue(sagasSQL, types, ids).Query(func(rows pgx.Rows) (err error) {
		l.sagas, err = pgx.CollectRows(rows, scanSaga)
		return err
	})
	b.Queue(stepsSQL, types, ids).Query(func(rows pgx.Rows) (err error) {
		l.steps, err = pgx.CollectRows(rows, scanStep)
		return err
	})
	b.Queue(tombstonesSQL, types, ids).Query(func(rows pgx.Rows) (err error) {
		l.tombs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t loadedTombstone, err error) {
			return t, row.Scan(&t.key.Type, &t.key.ID, &t.version)
		})
		return err
	})
	return l
}

func scanSaga(row pgx.CollectableRow) (loadedSaga, error) {
	out := loadedSaga{saga: &saga.Saga{}}
	s := out.saga
	var role, state string
	var failing pgtype.Timestamptz
	err := row.Scan(&out.key.Type, &out.key.ID, (*[16]byte)(&s.ID), &s.EventType, &role, &s.Version, &state, &s.Revision,
		&s.Attention, &s.Reason, &s.CancelVersion, &failing)
	if err != nil {
		return out, err
	}
	s.FailingSince = instant(failing)
	if s.Role, err = saga.ParseRole(role); err != nil {
		return out, err
	}
	s.State, err = saga.ParseState(state)
	return out, err
}

func scanStep(row pgx.CollectableRow) (loadedStep, error) {
	out := loadedStep{step: &saga.Step{}}
	t := out.step
	var dir, state, revert string
	var lease, due, first, sent, expect pgtype.Timestamptz
	err := row.Scan((*[16]byte)(&out.sagaID), &t.Dest, &dir, &state, &t.Maybe, &t.Attempt, &t.Epoch, &t.Worker, &lease,
		&due, &first, &sent, &expect, &t.Seq, &t.SpecVersion, &t.Late, &t.Superseded, &t.Outage, &revert, &t.Outcome, &t.Reason)
	if err != nil {
		return out, err
	}
	t.Lease, t.Due, t.FirstAttempt = instant(lease), instant(due), instant(first)
	t.FirstSent, t.ExpectBy = instant(sent), instant(expect)
	if t.Dir, err = saga.ParseDirection(dir); err != nil {
		return out, err
	}
	if t.State, err = saga.ParseStepState(state); err != nil {
		return out, err
	}
	t.Revert, err = saga.ParseRevert(revert)
	return out, err
}

// assemble puts the loaded rows into aggregates, with the rules of each step's version, and keeps an image for the diff.
func (u *unit) assemble(ctx context.Context, l *load) {
	u.env = saga.Env{Now: instant(l.now), Jitter: jitter}
	u.revision = l.revision
	byID := make(map[saga.ID]loadedSaga, len(l.sagas))
	for _, row := range l.sagas {
		byID[row.saga.ID] = row
		agg := u.aggs[row.key].agg
		agg.Sagas = append(agg.Sagas, row.saga)
	}
	for _, row := range l.steps {
		owner, known := byID[row.sagaID]
		if !known {
			continue
		}
		rules, err := u.store.rulesOf(ctx, row.step.Dest, row.step.SpecVersion)
		if err != nil {
			u.aggs[owner.key].err = fmt.Errorf("saga %s: %w", row.sagaID, err)
		}
		row.step.Rules = rules
		owner.saga.Steps = append(owner.saga.Steps, row.step)
	}
	for _, row := range l.tombs {
		u.aggs[row.key].agg.Tombstone = row.version
	}
	for _, l := range u.aggs {
		l.agg.Sort()
		for _, s := range l.agg.Sagas {
			l.sagas[s.ID] = imageOf(s)
		}
	}
}

func imageOf(s *saga.Saga) sagaImage {
	img := sagaImage{head: *s, steps: make([]saga.Step, len(s.Steps))}
	img.head.Steps = nil
	for i, t := range s.Steps {
		img.steps[i] = *t
	}
	return img
}

func instant(t pgtype.Timestamptz) saga.Instant {
	if !t.Valid {
		return 0
	}
	return saga.At(t.Time)
}

func timestamp(i saga.Instant) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: i.Time(), Valid: i != 0}
}
