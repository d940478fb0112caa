package postgres

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ebbline/ebb/producer/outbox"
)

// purgeBatch bounds the rows of one DELETE, and so how long it holds its locks.
const purgeBatch = 5000

// Maintain does what the tables need now and then: it makes the outbox
// partitions of the days ahead and drops the answers of old Idempotency-Keys.
// Run it at start and then every hour; running it in several processes at once
// does no harm.
func (s *Store) Maintain(ctx context.Context) error {
	made, err := outbox.Table{}.MakePartitions(ctx, s.pool, outbox.PartitionDays)
	if err != nil {
		return classify(fmt.Errorf("maintain orders: %w", err))
	}
	purged, err := s.purgeKeys(ctx)
	if err != nil {
		return classify(fmt.Errorf("maintain orders: purge request keys: %w", err))
	}
	s.log.DebugContext(ctx, "orders: maintained", slog.Int("partitions_made", made), slog.Int64("keys_purged", purged))
	return nil
}

func (s *Store) purgeKeys(ctx context.Context) (purged int64, err error) {
	for {
		tag, err := s.pool.Exec(ctx, `DELETE FROM orders.request_keys WHERE key IN (
			SELECT key FROM orders.request_keys WHERE created_at < clock_timestamp() - $1::interval
			ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, s.keep, purgeBatch)
		if err != nil {
			return purged, err
		}
		purged += tag.RowsAffected()
		if tag.RowsAffected() < purgeBatch {
			return purged, nil
		}
	}
}
