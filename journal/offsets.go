package journal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Stored is a reader's place in one partition.
type Stored struct {
	TopicID [16]byte
	Next    int64
}

// Offsets reads how far the reader's records are durable, by partition.
func (s *Store) Offsets(ctx context.Context, reader string) (map[TopicPartition]Stored, error) {
	rows, err := s.pool.Query(ctx, "SELECT topic, topic_id, partition, next_offset FROM ebb.offsets WHERE reader = $1", reader)
	if err != nil {
		return nil, fmt.Errorf("read offsets of %s: %w", reader, err)
	}
	out := map[TopicPartition]Stored{}
	var p TopicPartition
	var at Stored
	_, err = pgx.ForEachRow(rows, []any{&p.Topic, &at.TopicID, &p.Partition, &at.Next}, func() error {
		out[p] = at
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read offsets of %s: %w", reader, err)
	}
	return out, nil
}

// StartOffsets are where a destination's first version begins, by partition; what is missing begins at 0.
func (s *Store) StartOffsets(ctx context.Context, destination string) (map[TopicPartition]int64, error) {
	v, err := s.VersionOf(ctx, destination, 1)
	if err != nil {
		return nil, err
	}
	return v.Start, nil
}

// Latest gives a destination's newest version, ErrUnknownVersion if it was never applied or is removed.
func (s *Store) Latest(ctx context.Context, destination string) (*Version, error) {
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	s.catalog.mu.RLock()
	defer s.catalog.mu.RUnlock()
	all := s.catalog.versions[destination]
	if len(all) == 0 || all[len(all)-1].Removed {
		return nil, fmt.Errorf("%w: %s", ErrUnknownVersion, destination)
	}
	return all[len(all)-1], nil
}

// Retired gives the destinations that are removed, each by the version that ended it: what was done there may still have to be undone.
func (s *Store) Retired(ctx context.Context) ([]*Version, error) {
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	s.catalog.mu.RLock()
	defer s.catalog.mu.RUnlock()
	var out []*Version
	for _, all := range s.catalog.versions {
		if newest := all[len(all)-1]; newest.Removed {
			out = append(out, newest)
		}
	}
	slices.SortFunc(out, func(x, y *Version) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}
