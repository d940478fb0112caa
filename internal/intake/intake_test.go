package intake_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/internal/testkit"
)

func TestNewNamesEveryProblemAndDoesNotConnect(t *testing.T) {
	t.Parallel()
	_, err := intake.New(intake.Config{})
	for _, field := range []string{"Brokers", "Group", "Topics", "Places", "Take"} {
		require.ErrorContains(t, err, field)
	}
	cfg := (&bundle{brokers: []string{"127.0.0.1:1"}, logs: &testkit.Log{}}).config()
	_, err = intake.New(cfg) // a client that is made here and never closed would be found by the leak check
	require.NoError(t, err)
	cfg.Options = []kgo.Opt{kgo.SessionTimeout(-time.Second)}
	_, err = intake.New(cfg)
	require.ErrorContains(t, err, group)
}

// G2: the group's offset moves only behind what is durable.
func TestG02GroupOffsetFollowsTheRecordsThatAreDurable(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, 5)
	var open atomic.Bool
	b.fail = func(int) error {
		if open.Load() {
			return nil
		}
		return errors.New("the database is away")
	}
	run := b.start(func(c *intake.Config) { c.Options = append(c.Options, kgo.AutoCommitInterval(100*time.Millisecond)) })
	b.awaitTries(4)
	require.Equal(t, int64(-1), b.committed(0))

	run.end() // a stop without success leaves nothing behind either
	require.Equal(t, int64(-1), b.committed(0))
	require.Zero(t, b.count())

	open.Store(true)
	run = b.start()
	b.awaitCount(5)
	run.end()
	require.Equal(t, int64(5), b.committed(0))
	require.Equal(t, upTo(0, 5), b.offsets(0, 0))
}

func (b *bundle) awaitTries(n int) {
	b.t.Helper()
	testkit.Eventually(b.t, func() (bool, string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.tries >= n, fmt.Sprintf("%d tries", b.tries)
	}, 0)
}

// G2, G11: the durable place decides where reading begins; a group's offset that somebody moved repeats, and skips nothing.
func TestG11GroupOffsetThatWasMovedSkipsNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		move func(b *bundle)
		from int64
	}{
		"untouched": {func(*bundle) {}, 10},
		"reset":     {func(b *bundle) { b.commit(0, 0) }, 0},
		"behind":    {func(b *bundle) { b.commit(0, 7) }, 7},
		"ahead":     {func(b *bundle) { b.commit(0, 12) }, 10},
		"beyond":    {func(b *bundle) { b.commit(0, 1000) }, 10},
		"deleted": {func(b *bundle) {
			got, err := b.admin.DeleteGroups(b.t.Context(), group)
			require.NoError(b.t, err)
			require.NoError(b.t, got.Error())
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			b.produce(0, 10)
			run := b.start()
			b.awaitCount(10)
			run.end()
			tc.move(b)
			b.produce(0, 3)
			run = b.start()
			b.awaitCount(10 + int(13-tc.from))
			run.end()
			require.Equal(t, upTo(tc.from, 13), b.offsets(0, 10))
			require.Equal(t, int64(13), b.committed(0))
		})
	}
}

func TestMistypedGroupReadsEverythingAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, 4)
	run := b.start()
	b.awaitCount(4)
	run.end()
	run = b.start(func(c *intake.Config) {
		c.Group = "ebb.tset"
		c.Places = func(context.Context) (map[intake.TopicPartition]intake.Place, error) { return nil, nil }
	})
	b.awaitCount(8)
	run.end()
	require.Equal(t, upTo(0, 4), b.offsets(0, 4))
}

func TestPartitionsWithoutAPlaceBeginWhereTheReaderSays(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.produce(0, 5)
	b.produce(1, 2)
	b.first = map[intake.TopicPartition]int64{{Topic: topic, Partition: 0}: 3}
	run := b.start()
	b.awaitCount(4)
	run.end()
	require.Equal(t, upTo(3, 5), b.offsets(0, 0))
	require.Equal(t, upTo(0, 2), b.offsets(1, 0))
}

func TestPlacesThatCannotBeReadAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, 2)
	var asked atomic.Int32
	run := b.start(func(c *intake.Config) {
		places := c.Places
		c.Places = func(ctx context.Context) (map[intake.TopicPartition]intake.Place, error) {
			if asked.Add(1) < 4 {
				return nil, errors.New("the database is away")
			}
			return places(ctx)
		}
	})
	b.awaitCount(2)
	run.end()
	require.Equal(t, upTo(0, 2), b.offsets(0, 0))
}

// G2: going on would take other records for those that were read, or skip some.
func TestG02TopicMadeAgainEndsRun(t *testing.T) {
	t.Parallel()
	again := func(b *bundle) {
		_, err := b.admin.DeleteTopics(b.t.Context(), topic)
		require.NoError(b.t, err)
		b.client.PurgeTopicsFromClient(topic)
		created, err := b.admin.CreateTopic(b.t.Context(), 1, 1, nil, topic)
		require.NoError(b.t, err)
		require.NoError(b.t, created.Err)
		b.produce(0, 6)
	}
	t.Run("before the start", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 1)
		b.produce(0, 3)
		run := b.start()
		b.awaitCount(3)
		run.end()
		again(b)
		require.ErrorIs(t, <-b.start().done, intake.ErrTopicRecreated)
		require.Equal(t, 3, b.count())
	})
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 1)
		b.produce(0, 3)
		run := b.start()
		b.awaitCount(3)
		again(b)
		require.ErrorIs(t, <-run.done, intake.ErrTopicRecreated)
		require.Equal(t, 3, b.count())
	})
}

func TestG02PlaceBeyondTheEndEndsRun(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, 3)
	run := b.start()
	b.awaitCount(3)
	run.end()
	b.mu.Lock()
	place := b.places[intake.TopicPartition{Topic: topic}]
	place.Next = 50
	b.places[intake.TopicPartition{Topic: topic}] = place
	b.mu.Unlock()

	err := <-b.start().done
	require.ErrorIs(t, err, intake.ErrBeyondEnd)
	require.ErrorContains(t, err, "ends at 3, read up to 50")

	b.commit(0, 0) // a lower offset of the group does not hide it
	require.ErrorIs(t, <-b.start().done, intake.ErrBeyondEnd)
	require.Equal(t, 3, b.count())
}

func TestRecordsThatWereDeletedUnreadAreReported(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, 2)
	run := b.start()
	b.awaitCount(2)
	run.end()
	b.produce(0, 4)
	var to kadm.Offsets
	to.Add(kadm.Offset{Topic: topic, Partition: 0, At: 5})
	_, err := b.admin.DeleteRecords(t.Context(), to)
	require.NoError(t, err)
	run = b.start()
	b.awaitCount(3)
	run.end()
	require.Equal(t, []int64{5}, b.offsets(0, 2))
	require.Contains(t, b.logs.String(), "records were deleted before they were read")
	require.Contains(t, b.logs.String(), "from=2 to=5")
}

func TestReadyHoldsReadingBackAndKeepsTheMembership(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.produce(0, 3)
	open, asked := make(chan struct{}), make(chan struct{}, 1)
	run := b.start(func(c *intake.Config) {
		c.Ready = func(ctx context.Context) error {
			select {
			case asked <- struct{}{}:
			default:
			}
			select {
			case <-open:
			case <-ctx.Done():
			}
			return ctx.Err()
		}
	})
	<-asked
	testkit.Eventually(t, func() (bool, string) { return b.members() == 1, "not joined" }, 0)
	// Another member joins meanwhile: who waits must not hold the rebalance up.
	other := b.start()
	testkit.Eventually(t, func() (bool, string) { return b.members() == 2, "the other has not joined" }, 0)
	b.produce(0, 1)
	b.produce(1, 1)
	testkit.Eventually(t, func() (bool, string) {
		n := len(b.offsets(0, 0)) + len(b.offsets(1, 0))
		return n > 0, "the other has read nothing"
	}, 0)
	require.Less(t, b.count(), 5)
	close(open)
	b.awaitCount(5)
	other.end()
	run.end()
	require.Equal(t, upTo(0, 4), b.offsets(0, 0))
	require.Equal(t, upTo(0, 1), b.offsets(1, 0))
}

func TestStopLeavesTheGroup(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, 1)
	run := b.start()
	b.awaitCount(1)
	require.Equal(t, 1, b.members())
	run.end()
	require.Zero(t, b.members())
	b.produce(0, 1)
	require.Equal(t, 1, b.count())
}

// G2, G11: while members come and go, each partition's records are taken in order, and none is left out.
func TestG11RebalancesLoseNothing(t *testing.T) {
	t.Parallel()
	const partitions, each = 4, 60
	b := setup(t, partitions)
	small := func(c *intake.Config) { c.MaxPoll = 3 }
	runs := []*running{b.start(small)}
	for i := range each {
		for p := range int32(partitions) {
			b.produce(p, 1)
		}
		switch i % 15 {
		case 4:
			runs = append(runs, b.start(small))
		case 9:
			runs[0].end()
			runs = runs[1:]
			if len(runs) == 0 {
				runs = append(runs, b.start(small))
			}
		}
	}
	b.awaitPlaces(partitions, each)
	for _, r := range runs {
		r.end()
	}
	for p := range int32(partitions) {
		next := int64(0)
		for _, o := range b.offsets(p, 0) {
			require.LessOrEqual(t, o, next, "partition %d skips", p)
			next = max(next, o+1)
		}
		require.Equal(t, int64(each), next)
		require.Equal(t, int64(each), b.committed(p))
	}
}

func (b *bundle) awaitPlaces(partitions int32, next int64) {
	b.t.Helper()
	testkit.Eventually(b.t, func() (bool, string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for p := range partitions {
			if at := b.places[intake.TopicPartition{Topic: topic, Partition: p}].Next; at < next {
				return false, fmt.Sprintf("partition %d is at %d of %d", p, at, next)
			}
		}
		return true, ""
	}, 0)
}
