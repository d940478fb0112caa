package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/journal/saga"
)

// Attempt is one exchange of a step, as the audit has it.
type Attempt struct {
	// Epoch is the claim that it belongs to, Attempt the number of charged attempts at its end.
	Epoch   int64  `json:"epoch"`
	Attempt int    `json:"attempt"`
	Class   string `json:"class"`            // SUCCEEDED, REFUSED, RETRY, UNKNOWN …
	Status  int    `json:"status,omitempty"` // HTTP status, 0 without a reply
	Sent    bool   `json:"sent"`             // a byte may have left
	// Fenced says that the result came too late to count.
	Fenced    bool      `json:"fenced,omitempty"`
	Settled   bool      `json:"settled,omitempty"` // it settled the step
	Error     string    `json:"error,omitempty"`
	Worker    string    `json:"worker"`
	StartedAt time.Time `json:"startedAt"`
	// Micros is how long it took, in microseconds.
	Micros int64 `json:"durationMicros"`
}

type stepKey struct {
	saga      string
	dest, dir string
}

// attempts reads the exchanges of sagas, in the order of their claims.
func attempts(ctx context.Context, pool *pgxpool.Pool, sagas []saga.ID) (map[stepKey][]Attempt, error) {
	ids := make([]pgtype.UUID, len(sagas))
	for i, id := range sagas {
		ids[i] = pgtype.UUID{Bytes: id, Valid: true}
	}
	rows, err := pool.Query(ctx, `SELECT saga_id, destination, direction, epoch, attempt, class, status, sent, fenced, settled, error, worker, started_at, duration_us
FROM ebb.calls WHERE saga_id = ANY ($1::uuid[]) ORDER BY saga_id, destination, direction, epoch, recorded_at`, ids)
	if err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	out := map[stepKey][]Attempt{}
	var id saga.ID
	var dest, dir string
	var a Attempt
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &dest, &dir, &a.Epoch, &a.Attempt, &a.Class, &a.Status, &a.Sent, &a.Fenced, &a.Settled,
		&a.Error, &a.Worker, &a.StartedAt, &a.Micros}, func() error {
		a.StartedAt = a.StartedAt.UTC()
		key := stepKey{id.String(), dest, dir}
		out[key] = append(out[key], a)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	return out, nil
}
