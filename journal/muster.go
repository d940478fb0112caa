package journal

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Muster notes that a worker of a role is there, and tells its place among those that have been seen within the time, 0 for the first, and
// how many they are. Places are in the order of the ids, so that all workers that see each other agree.
func (s *Store) Muster(ctx context.Context, worker, role string, within time.Duration) (place, of int, err error) {
	host, _ := os.Hostname()
	err = s.pool.QueryRow(ctx, `WITH me AS (
	INSERT INTO ebb.workers (id, role, host, pid) VALUES ($1, $2, $3, $4)
	ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()
), gone AS (
	DELETE FROM ebb.workers WHERE role = $2 AND id <> $1 AND seen_at < clock_timestamp() - interval '1 day'
)
SELECT count(*) FILTER (WHERE id < $1), count(*) + 1 FROM ebb.workers
WHERE role = $2 AND id <> $1 AND seen_at > clock_timestamp() - $5::bigint * interval '1 microsecond'`,
		worker, role, host, os.Getpid(), within.Microseconds()).Scan(&place, &of)
	if err != nil {
		return 0, 0, fmt.Errorf("muster of %s: %w", role, err)
	}
	return place, of, nil
}

// Dismiss notes that a worker has gone.
func (s *Store) Dismiss(ctx context.Context, worker string) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM ebb.workers WHERE id = $1`, worker); err != nil {
		return fmt.Errorf("dismiss %s: %w", worker, err)
	}
	return nil
}
