package intake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/intake"
)

var errAway = errors.New("something is away")

// holding takes everything but partition 0 from an offset on, as long as away is set; tries counts how often that was asked for.
func (b *bundle) holding(from int64, away *atomic.Bool, tries *atomic.Int64) func(*intake.Config) {
	return func(c *intake.Config) {
		c.Take = func(ctx context.Context, ids map[string][16]byte, records []*kgo.Record) error {
			var now, later []*kgo.Record
			for _, r := range records {
				if away.Load() && r.Partition == 0 && r.Offset >= from {
					later = append(later, r)
				} else {
					now = append(now, r)
				}
			}
			if err := b.take(ctx, ids, now); err != nil || later == nil {
				return err
			}
			tries.Add(1)
			return fmt.Errorf("take: %w", &intake.HeldError{Records: later, Err: errAway})
		}
	}
}

// What cannot be taken in of one partition holds that partition alone; when it can, everything comes in order, and once.
func TestHeldPartitionHoldsNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	var away atomic.Bool
	var tries atomic.Int64
	away.Store(true)
	b.produce(0, 5)
	b.produce(1, 5)
	run := b.start(b.holding(3, &away, &tries), func(c *intake.Config) { c.MaxPoll = 2 })
	b.awaitCount(3 + 5)
	for range 10 { // while it is held
		b.produce(0, 1)
		b.produce(1, 1)
	}
	b.awaitCount(3 + 15)
	b.until(func() (bool, string) { return tries.Load() > 3, "it is tried again by itself" })
	require.Equal(t, upTo(0, 3), b.offsets(0, 0))
	require.Equal(t, upTo(0, 15), b.offsets(1, 0))
	b.until(func() (bool, string) {
		return b.committed(0) == 3 && b.committed(1) == 15, "only what is durable is committed"
	})

	away.Store(false)
	b.awaitCount(15 + 15)
	b.produce(0, 2) // and it goes on
	b.awaitCount(17 + 15)
	run.end()
	require.Equal(t, upTo(0, 17), b.offsets(0, 0), "in order and once")
	require.Equal(t, int64(17), b.committed(0))
}

// A rebalance does not wait for what is held, and who gets the partition gets its records.
func TestHeldPartitionDoesNotHoldRebalances(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	var away atomic.Bool
	var tries atomic.Int64
	away.Store(true)
	b.produce(0, 4)
	b.produce(1, 4)
	first := b.start(b.holding(1, &away, &tries))
	b.awaitCount(1 + 4)
	b.until(func() (bool, string) { return tries.Load() > 1, "nothing is held" })
	second := b.start(b.holding(1, &away, &tries))
	b.until(func() (bool, string) { return b.members() == 2, "the second has not joined" })
	first.end()
	b.produce(1, 3)
	b.awaitCount(1 + 7)
	away.Store(false)
	b.until(func() (bool, string) {
		got := slices.Compact(slices.Sorted(slices.Values(b.offsets(0, 0))))
		return slices.Equal(upTo(0, 4), got), fmt.Sprint(got)
	})
	b.produce(0, 1)
	b.until(func() (bool, string) { return slices.Contains(b.offsets(0, 0), 4), "it does not go on" })
	second.end()
	require.Equal(t, int64(5), b.committed(0))
	require.Equal(t, int64(7), b.committed(1))
}

// A stop does not wait for what is held; the next reader gets it.
func TestHeldPartitionDoesNotHoldTheStop(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	var away atomic.Bool
	var tries atomic.Int64
	away.Store(true)
	b.produce(0, 3)
	run := b.start(b.holding(0, &away, &tries))
	b.until(func() (bool, string) { return tries.Load() > 1, "nothing is held" })
	run.end()
	require.Zero(t, b.count())
	away.Store(false)
	run = b.start(b.holding(0, &away, &tries))
	b.awaitCount(3)
	run.end()
	require.Equal(t, upTo(0, 3), b.offsets(0, 0))
}
