package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ebbline/ebb/journal/saga"
)

// SagaView is a saga as people see it.
type SagaView struct {
	ID          string     `json:"id"`
	EventType   string     `json:"eventType"`
	Aggregate   string     `json:"aggregate"`
	AggregateID string     `json:"aggregateId"`
	Version     int64      `json:"version"`
	State       string     `json:"state"`
	Attention   string     `json:"attention,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	CreatedAt   time.Time  `json:"createdAt"`
	UpdatedAt   time.Time  `json:"updatedAt"`
	Steps       []StepView `json:"steps"`
}

// StepView is a step as people see it.
type StepView struct {
	Destination string `json:"destination"`
	Direction   string `json:"direction"`
	State       string `json:"state"`
	// Key is the Idempotency-Key of every attempt: what to ask the destination for.
	Key string `json:"key"`
	// Maybe says that an attempt may have had its effect without an answer that proves it.
	Maybe     bool       `json:"maybe,omitempty"`
	Attempt   int        `json:"attempt"`
	Seq       int64      `json:"seq,omitempty"`
	Version   int        `json:"specVersion"`
	Outcome   string     `json:"outcome,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	DueAt     *time.Time `json:"dueAt,omitempty"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

const (
	viewSagas = `SELECT id, event_type, aggregate_type, aggregate_id, aggregate_version, state, attention, reason, created_at, updated_at FROM ebb.sagas `
	viewSteps = `SELECT saga_id, destination, direction, state, maybe, attempt, seq, spec_version, outcome, reason, next_attempt_at, updated_at
FROM ebb.steps WHERE saga_id = ANY ($1::uuid[]) ORDER BY saga_id, place`
)

// SagasOf shows the sagas of an aggregate with their steps, by version.
func (s *Store) SagasOf(ctx context.Context, k Key) ([]SagaView, error) {
	return s.view(ctx, viewSagas+"WHERE aggregate_type = $1 AND aggregate_id = $2 ORDER BY aggregate_version, id", k.Type, k.ID)
}

// SagaOf shows one saga, ErrNoSaga if there is none.
func (s *Store) SagaOf(ctx context.Context, id saga.ID) (SagaView, error) {
	list, err := s.view(ctx, viewSagas+"WHERE id = $1", [16]byte(id))
	switch {
	case err != nil:
		return SagaView{}, err
	case len(list) == 0:
		return SagaView{}, fmt.Errorf("%w: %s", ErrNoSaga, id)
	}
	return list[0], nil
}

// SagaFilter chooses sagas for List.
type SagaFilter struct {
	State     string // a saga state, empty for all
	Attention bool   // only those that an operator must look at
	After     string // id of the last saga of the page before, empty for the first
	Limit     int    // page size, 1 to 1000
}

// List shows sagas in the order of their ids, newest first.
func (s *Store) List(ctx context.Context, f SagaFilter) ([]SagaView, error) {
	after := saga.ID{}
	if f.After != "" {
		var err error
		if after, err = saga.ParseID(f.After); err != nil {
			return nil, err
		}
	}
	limit := min(max(f.Limit, 1), 1000)
	return s.view(ctx, viewSagas+`WHERE ($1 = '' OR state = $1) AND (NOT $2 OR attention <> '') AND ($3 OR id < $4)
ORDER BY id DESC LIMIT $5`, f.State, f.Attention, f.After == "", [16]byte(after), limit)
}

func (s *Store) view(ctx context.Context, sql string, args ...any) ([]SagaView, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read sagas: %w", err)
	}
	var ids []pgtype.UUID
	place := map[saga.ID]int{}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v SagaView, err error) {
		var id saga.ID
		err = row.Scan((*[16]byte)(&id), &v.EventType, &v.Aggregate, &v.AggregateID, &v.Version, &v.State, &v.Attention, &v.Reason, &v.CreatedAt, &v.UpdatedAt)
		v.ID, v.Steps = id.String(), []StepView{}
		place[id] = len(ids)
		ids = append(ids, pgtype.UUID{Bytes: id, Valid: true})
		return v, err
	})
	if err != nil || len(list) == 0 {
		return list, err
	}
	rows, err = s.pool.Query(ctx, viewSteps, ids)
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	var id saga.ID
	var t StepView
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &t.Destination, &t.Direction, &t.State, &t.Maybe, &t.Attempt, &t.Seq, &t.Version,
		&t.Outcome, &t.Reason, &t.DueAt, &t.UpdatedAt}, func() error {
		dir, err := saga.ParseDirection(t.Direction)
		if err != nil {
			return err
		}
		t.Key = saga.Key(id, t.Destination, dir)
		at := &list[place[id]]
		at.Steps = append(at.Steps, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	return list, nil
}

// Totals counts sagas by end, for a last line: open ones are those that neither ended nor wait for an operator.
type Totals struct {
	Sagas       int64 `json:"sagas"`
	Completed   int64 `json:"completed"`
	Compensated int64 `json:"compensated"`
	Parked      int64 `json:"parked"`
	Open        int64 `json:"open"`
}

// Totals counts all sagas.
func (s *Store) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	err := s.pool.QueryRow(ctx, `SELECT count(*),
	count(*) FILTER (WHERE attention = '' AND state = 'COMPLETED'),
	count(*) FILTER (WHERE attention = '' AND state = 'COMPENSATED'),
	count(*) FILTER (WHERE attention <> ''),
	count(*) FILTER (WHERE attention = '' AND state IN ('RUNNING', 'FAILING', 'COMPENSATING'))
FROM ebb.sagas`).Scan(&t.Sagas, &t.Completed, &t.Compensated, &t.Parked, &t.Open)
	if err != nil {
		return t, fmt.Errorf("count sagas: %w", err)
	}
	return t, nil
}

// Backlog is what a destination still has to do.
type Backlog struct {
	Ready   int64
	Calling int64
	Parked  int64
	// Oldest is the age of the oldest step that is neither settled nor parked; zero if there is none.
	Oldest time.Duration
}

const (
	dueSQL = `SELECT count(*) FROM (
	SELECT FROM ebb.steps WHERE destination = $1 AND state IN ('READY', 'RESOLVING') LIMIT $2) AS due`

	queuedSQL = `SELECT count(*) - count(DISTINCT (w.aggregate_type, w.aggregate_id)) FROM (
	SELECT s.aggregate_type, s.aggregate_id FROM ebb.steps t JOIN ebb.sagas s ON s.id = t.saga_id
	WHERE t.destination = $1 AND t.state = 'WAITING' AND NOT EXISTS (
		SELECT FROM ebb.sagas p
		WHERE p.aggregate_type = s.aggregate_type AND p.aggregate_id = s.aggregate_id AND p.attention <> '')
	LIMIT 5000) AS w`
)

// Due counts the steps of the destination that are due, up to most.
func (s *Store) Due(ctx context.Context, destination string, most int) (int, error) {
	return s.count(ctx, destination, dueSQL, destination, most)
}

// Queued counts the steps that wait at the destination behind others of their aggregates. What waits behind something that an operator
// must look at does not count: it may wait for long, and others must not wait with it. It is costly where much waits.
func (s *Store) Queued(ctx context.Context, destination string) (int, error) {
	return s.count(ctx, destination, queuedSQL, destination)
}

func (s *Store) count(ctx context.Context, destination, sql string, args ...any) (n int, err error) {
	if err := s.pool.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("backlog of %s: %w", destination, err)
	}
	return n, nil
}

// BacklogOf reads a destination's backlog.
func (s *Store) BacklogOf(ctx context.Context, destination string) (Backlog, error) {
	var b Backlog
	var oldest *time.Time
	var now time.Time
	err := s.pool.QueryRow(ctx, `SELECT
	(SELECT count(*) FROM ebb.steps WHERE destination = $1 AND state IN ('READY', 'RESOLVING')),
	(SELECT count(*) FROM ebb.steps WHERE destination = $1 AND state = 'CALLING'),
	(SELECT count(*) FROM ebb.steps WHERE destination = $1 AND state = 'PARKED'),
	(SELECT min(created_at) FROM ebb.steps WHERE destination = $1 AND state IN ('READY', 'RESOLVING', 'CALLING')),
	clock_timestamp()`, destination).Scan(&b.Ready, &b.Calling, &b.Parked, &oldest, &now)
	if err != nil {
		return b, fmt.Errorf("backlog of %s: %w", destination, err)
	}
	if oldest != nil {
		b.Oldest = now.Sub(*oldest)
	}
	return b, nil
}
