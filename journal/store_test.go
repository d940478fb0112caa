package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

func TestForwardAndUnwind(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("b", "a"), dest("c", "b"))
	e := event(1, "OrderCreated", "o-1", 1)
	for _, d := range []string{"c", "a", "b"} {
		require.Equal(t, Ingested{Events: 1}, b.read(d, e))
	}
	require.Empty(t, b.claim("b"), "b comes after a")
	b.do("a", yes)
	b.do("b", yes)
	b.do("c", saga.Result{Class: saga.ClassRefused, Reason: "no such street"})
	require.Equal(t, "FAILING", b.saga(1).State)

	require.NoError(t, b.Compensate(t.Context(), Reader{Name: "ebb.compensator"}, []Signal{
		{Position: Position{"comp", 0, 0}, Begin: &Begin{Saga: eventID(1)}},
		{Position: Position{"comp", 0, 1}, Begin: &Begin{Saga: eventID(1)}},
	}))
	require.Empty(t, b.claim("a"), "a is undone after b")
	undo := b.do("b", saga.Result{Class: saga.ClassSucceeded})
	require.Equal(t, "undo b", string(undo.Content))
	require.Equal(t, "COMPENSATING", b.saga(1).State)
	b.do("a", saga.Result{Class: saga.ClassSucceeded})
	require.Equal(t, "COMPENSATED", b.saga(1).State)
	require.Equal(t, []string{"StepSucceeded", "StepSucceeded", "StepFailed", "CompensationRequested", "StepUndone", "StepUndone", "SagaCompensated"}, b.published())
	offsets, err := b.Offsets(t.Context(), "ebb.compensator")
	require.NoError(t, err)
	require.Equal(t, int64(2), offsets[TopicPartition{"comp", 0}].Next)
}

func TestG11ReadingAgainAddsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	e := event(1, "OrderCreated", "o-1", 1)
	b.read("a", e)
	b.read("a", e, e)
	b.do("a", yes)
	b.read("a", e)
	require.Empty(t, b.claim("a"))
	require.Equal(t, "COMPLETED", b.saga(1).State)
	require.Equal(t, []string{"StepSucceeded", "SagaCompleted"}, b.published())
}

func TestG04EveryAttemptSendsTheStoredBytes(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	first := b.do("a", saga.Result{Class: saga.ClassUnknown, Reason: "cut"})
	got, err := b.Claim(t.Context(), ClaimRequest{Destination: "a", Worker: "w2", Limit: 1, Lease: time.Minute,
		Prepare: func(context.Context, Candidate) Prepared {
			t.Error("a second attempt must not be rendered again")
			return Prepared{Content: []byte("other")}
		}})
	require.NoError(t, err)
	require.Len(t, got.Claimed, 1)
	require.Equal(t, first.Content, got.Claimed[0].Content)
	require.True(t, got.Claimed[0].Maybe)
	require.Equal(t, 2, got.Claimed[0].Attempt)
}

func TestG05LateResults(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	got := b.claim("a")
	_, err := b.pool.Exec(t.Context(), "UPDATE ebb.steps SET lease_until = clock_timestamp() - interval '1 second'")
	require.NoError(t, err)
	n, err := b.Expire(t.Context(), "a", 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	again := b.claim("a")
	require.Len(t, again, 1)
	require.ErrorIs(t, b.end(got[0], saga.Result{Class: saga.ClassRefused}), saga.ErrFenced, "a refusal under an old epoch says nothing")
	require.NoError(t, b.end(got[0], yes), "a success is proof")
	require.ErrorIs(t, b.end(again[0], saga.Result{Class: saga.ClassUnknown}), saga.ErrFenced)
	require.Equal(t, "COMPLETED", b.saga(1).State)
	var calls int
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT count(*) FROM ebb.calls").Scan(&calls))
	require.Equal(t, 4, calls, "every exchange is kept")
}

func TestClaimSettlesWhatNeedsNoCall(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		class saga.Class
		saga  string
		step  string
	}{
		{saga.ClassSkipped, "COMPLETED", "SKIPPED"},
		{saga.ClassRefused, "FAILING", "REFUSED"},
		{saga.ClassParked, "RUNNING", "PARKED"},
	} {
		t.Run(tc.class.String(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, dest("a"))
			b.read("a", event(1, "OrderCreated", "o-1", 1))
			got, err := b.Claim(t.Context(), ClaimRequest{Destination: "a", Worker: "w1", Limit: 1, Lease: time.Minute,
				Prepare: func(context.Context, Candidate) Prepared { return Prepared{Class: tc.class, Reason: "because"} }})
			require.NoError(t, err)
			require.Empty(t, got.Claimed)
			require.Equal(t, 1, got.Settled)
			require.Equal(t, tc.saga, b.saga(1).State)
			require.Equal(t, tc.step, b.saga(1).state("a", "do"))
		})
	}
}

func TestCancelBeforeDuringAfter(t *testing.T) {
	t.Parallel()
	cancel := func(b *testBundle, order string) {
		require.NoError(b.t, b.Compensate(b.t.Context(), Reader{Name: "ebb.compensator"}, []Signal{{
			Position: Position{"orders", 0, b.offset.Add(1)},
			Cancel:   &Cancel{Event: eventID(9), Aggregate: Key{"order", order}, Version: 2, Reason: "customer"},
		}}))
		_, err := b.Sweep(b.t.Context(), 0, 10)
		require.NoError(b.t, err)
	}
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		b := setup(t, dest("a"))
		cancel(b, "o-1")
		b.read("a", event(1, "OrderCreated", "o-1", 1))
		require.Empty(t, b.claim("a"))
		require.Equal(t, "COMPENSATED", b.saga(1).State)
		require.Equal(t, []string{"SagaCompensated"}, b.published())
	})
	t.Run("during", func(t *testing.T) {
		t.Parallel()
		b := setup(t, dest("a"), dest("b", "a"))
		b.read("a", event(1, "OrderCreated", "o-1", 1))
		b.read("b", event(1, "OrderCreated", "o-1", 1))
		flying := b.claim("a")
		cancel(b, "o-1")
		require.Equal(t, "COMPENSATING", b.saga(1).State)
		require.NoError(t, b.end(flying[0], yes))
		b.do("a", saga.Result{Class: saga.ClassSucceeded})
		require.Equal(t, "COMPENSATED", b.saga(1).State)
		require.Equal(t, "ABANDONED", b.saga(1).state("b", "do"))
	})
	t.Run("after", func(t *testing.T) {
		t.Parallel()
		b := setup(t, dest("a"))
		b.read("a", event(1, "OrderCreated", "o-1", 1))
		b.do("a", yes)
		cancel(b, "o-1")
		cancel(b, "o-1")
		b.do("a", saga.Result{Class: saga.ClassSucceeded})
		require.Equal(t, "COMPENSATED", b.saga(1).State)
		require.Empty(t, b.claim("a"))
	})
}

func TestG09UnreadDestinationGetsAttention(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("b"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	b.do("a", yes)
	_, err := b.pool.Exec(t.Context(), "UPDATE ebb.steps SET expect_by = clock_timestamp() - interval '1 second' WHERE expect_by IS NOT NULL")
	require.NoError(t, err)
	got, err := b.Sweep(t.Context(), time.Minute, 10)
	require.NoError(t, err)
	require.Equal(t, Swept{Aged: 1}, got)
	require.Contains(t, b.saga(1).Attention, "b has not read")
	b.read("b", event(1, "OrderCreated", "o-1", 1))
	require.Empty(t, b.saga(1).Attention)
	b.do("b", yes)
	require.Equal(t, "COMPLETED", b.saga(1).State)
	require.Equal(t, []string{"StepSucceeded", "SagaParked", "SagaResumed", "StepSucceeded", "SagaCompleted"}, b.published())
}

func TestRetryPinsTheNewestVersionOfAnUnsentStep(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	_, err := b.Claim(t.Context(), ClaimRequest{Destination: "a", Worker: "w1", Limit: 1, Lease: time.Minute,
		Prepare: func(context.Context, Candidate) Prepared {
			return Prepared{Class: saga.ClassParked, Reason: "bad template"}
		}})
	require.NoError(t, err)
	v2 := dest("a")
	v2.Hash = "a-v2"
	_, err = b.Apply(t.Context(), []Destination{v2}, noEnds, FromNow, false)
	require.NoError(t, err)
	by := Action{Who: "ops", Reason: "template mended"}
	require.ErrorIs(t, b.Retry(t.Context(), eventID(1), "a", saga.Do, Action{}), ErrNoReason)
	require.ErrorIs(t, b.Retry(t.Context(), eventID(7), "a", saga.Do, by), ErrNoSaga)
	require.NoError(t, b.Retry(t.Context(), eventID(1), "a", saga.Do, by))
	got := b.do("a", yes)
	require.Equal(t, 2, got.SpecVersion)
	require.ErrorIs(t, b.Retry(t.Context(), eventID(1), "a", saga.Do, by), saga.ErrNotParked)
	var actions int
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT count(*) FROM ebb.operator_actions").Scan(&actions))
	require.Equal(t, 1, actions)
}

func TestApplyVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ends := func(n int64) EndOffsets {
		return func(context.Context) (map[TopicPartition]int64, error) {
			return map[TopicPartition]int64{{"orders", 0}: n}, nil
		}
	}
	_, err := b.Apply(t.Context(), []Destination{dest("n").on("OrderStatusUpdated")}, ends(0), FromNow, false)
	require.ErrorIs(t, err, ErrEmptyPlan)
	changes, err := b.Apply(t.Context(), []Destination{dest("a"), dest("z")}, ends(10), FromNow, false)
	require.NoError(t, err)
	require.Equal(t, []Change{{"a", Added, 1}, {"z", Added, 1}}, changes)
	changed := dest("a")
	changed.Hash = "other"
	changes, err = b.Apply(t.Context(), []Destination{changed, dest("b")}, ends(20), FromNow, false)
	require.NoError(t, err)
	require.Equal(t, []Change{{"a", Changed, 2}, {"b", Added, 1}, {"z", Removed, 2}}, changes)
	for offset, want := range map[int64]string{9: "", 10: "a1 z1", 19: "a1 z1", 20: "a2 b1"} {
		got := ""
		for _, p := range b.catalog.plan("OrderCreated", Position{"orders", 0, offset}) {
			got += fmt.Sprintf(" %s%d", p.Dest, p.SpecVersion)
		}
		require.Equal(t, want, trim(got), "plan at offset %d", offset)
	}
	changes, err = b.Apply(t.Context(), []Destination{changed, dest("b")}, func(context.Context) (map[TopicPartition]int64, error) {
		return nil, errors.New("must not be asked")
	}, FromNow, false)
	require.NoError(t, err)
	require.Equal(t, []Change{{"a", Unchanged, 2}, {"b", Unchanged, 1}}, changes)
}

func trim(s string) string {
	if s == "" {
		return s
	}
	return s[1:]
}

// settleAtOnce lets many destinations of many sagas settle at the same time, each in a transaction of its own.
func settleAtOnce(t *testing.T, b *testBundle, dests []string, orders int) {
	t.Helper()
	var claims []Claimed
	for _, d := range dests {
		for n := range orders {
			b.read(d, event(n+1, "OrderCreated", fmt.Sprint("o-", n+1), 1))
		}
	}
	for _, d := range dests {
		claims = append(claims, b.claim(d)...)
	}
	require.Len(t, claims, len(dests)*orders)
	var wg sync.WaitGroup
	errs := make([]error, len(claims))
	start := make(chan struct{})
	for i, c := range claims {
		wg.Go(func() {
			<-start
			_, errs[i] = b.Record(t.Context(), []Recording{{Claimed: c, Worker: "w1", Result: yes, Undo: []byte("undo")}})
		})
	}
	close(start)
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestNewDestinationBeginsAtAMoment(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	moment := func(context.Context) (map[TopicPartition]int64, error) {
		return map[TopicPartition]int64{{"orders", 0}: 7}, nil
	}
	end := func(context.Context) (map[TopicPartition]int64, error) {
		return map[TopicPartition]int64{{"orders", 0}: 20}, nil
	}
	changed := dest("a")
	changed.Hash = "a-v2"
	_, err := b.Apply(t.Context(), []Destination{changed, dest("b")}, end, FromOffsets(moment), false)
	require.NoError(t, err)
	starts, err := b.StartOffsets(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, map[TopicPartition]int64{{"orders", 0}: 7}, starts)
	var start int64
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT start_offset FROM ebb.destination_offsets WHERE name = 'a' AND version = 2").Scan(&start))
	require.Equal(t, int64(20), start, "a new version begins at the end")
}

func TestTheLockIsNeeded(t *testing.T) {
	t.Parallel()
	dests := []string{"a", "b", "c", "d"}
	set := []Destination{dest("a"), dest("b"), dest("c"), dest("d")}
	t.Run("with it every saga completes", func(t *testing.T) {
		t.Parallel()
		b := setup(t, set...)
		settleAtOnce(t, b, dests, 25)
		totals, err := b.Totals(t.Context())
		require.NoError(t, err)
		require.Equal(t, Totals{Sagas: 25, Completed: 25}, totals)
	})
	t.Run("without it some never do", func(t *testing.T) {
		t.Parallel()
		b := setup(t, set...)
		b.skipLock = true
		for round := 0; ; round++ {
			settleAtOnce(t, b, dests, 25)
			totals, err := b.Totals(t.Context())
			require.NoError(t, err)
			if totals.Open > 0 {
				return
			}
			require.Less(t, round, 20, "no saga was ever left open: the lock would not be needed")
			_, err = b.pool.Exec(t.Context(), "TRUNCATE ebb.sagas, ebb.steps, ebb.events, ebb.requests, ebb.calls, ebb.offsets")
			require.NoError(t, err)
		}
	})
}

func TestIngestClaimsWhatIsDueAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("b", "a"))
	ingest := func(d string, limit int, n ...int) Ingested {
		var records []Record
		for _, i := range n {
			records = append(records, Record{Position: Position{"orders", 0, b.offset.Add(1)}, Event: event(i, "OrderCreated", fmt.Sprint("o-", i), 1)})
		}
		got, err := b.Ingest(t.Context(), Intake{Reader: reader(d), Records: records, Claim: ClaimRequest{
			Destination: d, Worker: "w1", Limit: limit, Lease: time.Minute,
			Prepare: func(_ context.Context, c Candidate) Prepared {
				if c.Aggregate.ID == "o-2" {
					return Prepared{Class: saga.ClassSkipped, Reason: "no need"}
				}
				return Prepared{Content: c.EventBody}
			},
		}})
		require.NoError(t, err)
		return got[0]
	}
	got := ingest("a", 2, 1, 2, 3, 4)
	require.Len(t, got.Claimed, 2, "as far as the limit goes")
	require.Equal(t, 1, got.Settled)
	require.Equal(t, `{"orderId":"o-1"}`, string(got.Claimed[0].Content))
	require.Empty(t, ingest("b", 10, 1, 2, 3, 4).Claimed, "b comes after a, and loads its reply when it is claimed")
	require.Empty(t, ingest("a", 10, 1).Claimed, "reading again claims nothing")
	require.Len(t, b.claim("a"), 1, "the rest is left to Claim")
	for _, c := range got.Claimed {
		require.NoError(t, b.end(c, yes))
	}
	require.Len(t, b.claim("b"), 3)
}

func TestEventIDsAreOfTheDatabasesTimeAndAscend(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	b.do("a", yes)
	var right int
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT count(*) FROM ebb.outbox o, ebb.sagas s
WHERE abs(('x' || replace(left(o.id::text, 13), '-', ''))::bit(48)::bigint - extract(epoch FROM s.updated_at) * 1000) < 60000
	AND substring(o.id::text, 15, 1) = '7' AND substring(o.id::text, 20, 1) IN ('8', '9', 'a', 'b')`).Scan(&right))
	require.Equal(t, 2, right)
	require.Equal(t, []string{"StepSucceeded", "SagaCompleted"}, b.published(), "in the order of their ids")
}

// brokenEncoder fails for one type of event.
type brokenEncoder struct {
	typeEncoder
	fails string
}

func (b *brokenEncoder) Encode(ctx context.Context, v any) ([]byte, error) {
	if name := fmt.Sprintf("%T", v); name == b.fails {
		return nil, errors.New("cannot encode " + name)
	}
	return b.typeEncoder.Encode(ctx, v)
}

// What is published commits with what caused it or not at all (G1), and so does the undo request of a success (G6).
func TestG06SuccessItsUndoAndItsEventsCommitTogether(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	encoder := &brokenEncoder{fails: "schemas.SagaCompleted"}
	var err error
	b.Store, err = Open(Config{Pool: b.pool, Encoder: encoder})
	require.NoError(t, err)
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	got := b.claim("a")
	success := []Recording{{Claimed: got[0], Worker: "w1", Result: yes, Undo: []byte("undo a")}}
	kept := func() (undo, calls int) {
		require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM ebb.requests WHERE direction = 'undo' AND content = 'undo a'),
	(SELECT count(*) FROM ebb.calls)`).Scan(&undo, &calls))
		return undo, calls
	}

	_, err = b.Record(t.Context(), success)
	require.ErrorContains(t, err, "cannot encode")
	undo, calls := kept()
	require.Zero(t, undo+calls)
	require.Empty(t, b.published())
	require.Equal(t, "CALLING", b.saga(1).state("a", "do"))

	encoder.fails = ""
	_, err = b.Record(t.Context(), success)
	require.NoError(t, err)
	undo, calls = kept()
	require.Equal(t, 1, undo)
	require.Equal(t, 1, calls)
	require.Equal(t, []string{"StepSucceeded", "SagaCompleted"}, b.published())
}

func TestFreshRequestWaitsUntilItsSagaIsVisible(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"))
	ask := func(fresh bool, offset int64) error {
		return b.Compensate(t.Context(), Reader{Name: "ebb.compensator"}, []Signal{
			{Position: Position{"comp", 0, offset}, Begin: &Begin{Saga: eventID(1), Fresh: fresh}},
		})
	}
	require.ErrorIs(t, ask(true, 0), ErrNotVisible)
	offsets, err := b.Offsets(t.Context(), "ebb.compensator")
	require.NoError(t, err)
	require.Empty(t, offsets, "the offset does not pass it")
	require.NoError(t, ask(false, 0), "an old one is passed over: its saga is not there any more")
	b.read("a", event(1, "OrderCreated", "o-1", 1))
	require.NoError(t, ask(true, 1))
}

func TestPollsOfSeveralReadersShareATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("b", "a"))
	var records []Record
	for n := 1; n <= 3; n++ {
		records = append(records, Record{Position: Position{"orders", 0, b.offset.Add(1)}, Event: event(n, "OrderCreated", fmt.Sprint("o-", n), 1)})
	}
	poll := func(d string) Intake {
		return Intake{Reader: reader(d), Records: records, Claim: ClaimRequest{
			Destination: d, Worker: "w1", Limit: 10, Lease: time.Minute,
			Prepare: func(_ context.Context, c Candidate) Prepared { return Prepared{Content: []byte("call " + c.Dest)} },
		}}
	}
	got, err := b.Ingest(t.Context(), poll("b"), poll("a"))
	require.NoError(t, err)
	require.Equal(t, 3, got[0].Events)
	require.Empty(t, got[0].Claimed)
	require.Len(t, got[1].Claimed, 3)
	for _, d := range []string{"a", "b"} {
		offsets, err := b.Offsets(t.Context(), "ebb."+d)
		require.NoError(t, err)
		require.Equal(t, int64(4), offsets[TopicPartition{"orders", 0}].Next)
	}
	require.Equal(t, "WAITING", b.saga(1).state("b", "do"))
}

func TestBacklogIsWhatIsDueAndWhatWaitsItsTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a").on("OrderCreated", "OrderStatusUpdated"))
	backlog := func(most int) [2]int {
		due, err := b.Due(t.Context(), "a", most)
		require.NoError(t, err)
		queued, err := b.Queued(t.Context(), "a")
		require.NoError(t, err)
		return [2]int{due, queued}
	}
	for n := 1; n <= 4; n++ {
		got := b.read("a", event(n, "OrderStatusUpdated", "o-1", int64(n)))
		require.Equal(t, min(n-1, 1), got.Queued, "the first waits for nothing")
	}
	require.Zero(t, b.read("a", event(5, "OrderCreated", "o-2", 1)).Queued)
	require.Equal(t, [2]int{2, 2}, backlog(9), "three wait at one aggregate, so two are queued")
	require.Equal(t, [2]int{1, 2}, backlog(1))
	for _, c := range b.claim("a") {
		require.NoError(t, b.end(c, saga.Result{Class: saga.ClassRefused, Reason: "no"}))
	}
	_, err := b.pool.Exec(t.Context(), "UPDATE ebb.sagas SET attention = 'look' WHERE id = $1", [16]byte(eventID(1)))
	require.NoError(t, err)
	require.Zero(t, backlog(9)[1], "what waits behind something parked does not count")
}
