package journal

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// offering gives so many places at each destination, and keeps what was asked to be rendered.
type offering struct {
	places   int
	rendered []Candidate
	answer   Prepared
}

func (o *offering) offer(dest string, n int) ClaimRequest {
	return ClaimRequest{
		Destination: dest, Worker: "w2", Limit: min(n, o.places), Lease: time.Minute,
		Prepare: func(_ context.Context, c Candidate) Prepared {
			o.rendered = append(o.rendered, c)
			if o.answer.Class != 0 {
				return o.answer
			}
			return Prepared{Content: []byte("call " + c.Dest)}
		},
	}
}

func success(c Claimed) Recording {
	return Recording{Claimed: c, Worker: "w1", Result: yes, Undo: []byte("undo " + c.Dest),
		Exchange: Exchange{Sent: true, Status: 200, Body: []byte("reply of " + c.Dest), Started: time.Now()}}
}

func (b *testBundle) onward(o *offering, members ...Recording) []Claimed {
	b.t.Helper()
	got, err := b.RecordOnward(b.t.Context(), members, o.offer)
	require.NoError(b.t, err)
	for _, err := range got.Errs {
		require.NoError(b.t, err)
	}
	return got.Claimed
}

func chained(t *testing.T) *testBundle {
	t.Helper()
	b := setup(t, dest("a"), dest("b"), dest("c", "a"), dest("d", "b", "c"))
	for _, name := range []string{"a", "b", "c", "d"} {
		b.read(name, event(1, "OrderCreated", "7", 1))
	}
	return b
}

func TestG03ResultsClaimWhatTheyLetGoOn(t *testing.T) {
	t.Parallel()
	b := chained(t)
	o := &offering{places: 1}
	require.Empty(t, b.onward(o, success(b.claim("b")[0])), "d waits for c as well")
	c := b.onward(o, success(b.claim("a")[0]))
	require.Len(t, c, 1)
	require.Equal(t, "c", c[0].Dest)
	require.Equal(t, "CALLING", b.saga(1).state("c", "do"))
	require.Empty(t, b.claim("c"), "it is taken")
	d := b.onward(o, success(c[0]))
	require.Len(t, d, 1)
	require.Equal(t, "call d", string(d[0].Content))
	require.Equal(t, map[string]Response{"b": {200, []byte("reply of b")}, "c": {200, []byte("reply of c")}}, o.rendered[1].Responses)

	// What it would have been given by Claim is the same, and the request is stored before anything can be sent.
	var stored string
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT convert_from(content, 'UTF8') FROM ebb.requests
		WHERE saga_id = $1 AND destination = 'd' AND direction = 'do'`, eventID(1).String()).Scan(&stored))
	require.Equal(t, "call d", stored)
	require.Empty(t, b.onward(o, success(d[0])))
	require.Equal(t, "COMPLETED", b.saga(1).State)
}

func TestOnwardGivesWhatClaimGives(t *testing.T) {
	t.Parallel()
	b := chained(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		b.read(name, event(2, "OrderCreated", "8", 1))
	}
	o := &offering{places: 1}
	for _, m := range b.claim("b") {
		require.NoError(t, b.end(m, yes))
	}
	starts := b.claim("a")
	require.Len(t, b.onward(o, success(starts[0])), 1)
	require.NoError(t, b.end(starts[1], yes))
	var byClaim []Candidate
	_, err := b.Claim(t.Context(), ClaimRequest{
		Destination: "c", Worker: "w", Limit: 1, Lease: time.Minute,
		Prepare: func(_ context.Context, c Candidate) Prepared {
			byClaim = append(byClaim, c)
			return Prepared{Content: []byte("call c")}
		},
	})
	require.NoError(t, err)
	require.Len(t, byClaim, 1)
	want, got := byClaim[0], o.rendered[0]
	// c comes after a only; Claim finds b's reply as well.
	delete(want.Responses, "b")
	require.Equal(t, starts[0].Saga, got.Saga)
	require.Equal(t, starts[1].Saga, want.Saga)
	want.Saga, want.Aggregate, want.EventBody, want.EventTime = got.Saga, got.Aggregate, got.EventBody, got.EventTime
	require.Equal(t, want, got)
}

func TestOnwardLeavesToClaimWhatItCannotRender(t *testing.T) {
	t.Parallel()
	b := chained(t)
	o := &offering{places: 1}
	require.NoError(t, b.end(b.claim("b")[0], yes)) // by a process that this one knows nothing of
	c := b.onward(o, success(b.claim("a")[0]))
	require.Empty(t, b.onward(o, success(c[0])), "the reply of b is not at hand")
	require.Equal(t, "READY", b.saga(1).state("d", "do"))
	require.Len(t, b.claim("d"), 1)
}

func TestOnwardWithoutPlaces(t *testing.T) {
	t.Parallel()
	b := chained(t)
	require.Empty(t, b.onward(&offering{}, success(b.claim("a")[0])))
	require.Len(t, b.claim("c"), 1)
}

func TestResultsOfOneSagaShareATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a"), dest("b"), dest("c", "a", "b"))
	for _, name := range []string{"a", "b", "c"} {
		b.read(name, event(1, "OrderCreated", "7", 1))
	}
	o := &offering{places: 5}
	got := b.onward(o, success(b.claim("a")[0]), success(b.claim("b")[0]))
	require.Len(t, got, 1, "c is claimed once")
	require.Len(t, o.rendered[0].Responses, 2)
	s := b.saga(1)
	require.Equal(t, []string{"SUCCEEDED", "SUCCEEDED", "CALLING"}, []string{s.state("a", "do"), s.state("b", "do"), s.state("c", "do")})
	require.Equal(t, []string{"StepSucceeded", "StepSucceeded"}, b.published())
}

func TestOnwardSettlesWhatNeedsNoCall(t *testing.T) {
	t.Parallel()
	b := chained(t)
	o := &offering{places: 1, answer: Prepared{Class: saga.ClassSkipped, Reason: "not for this order"}}
	require.Empty(t, b.onward(o, success(b.claim("a")[0])))
	require.Equal(t, "SKIPPED", b.saga(1).state("c", "do"))
	require.Len(t, b.claim("b"), 1)
}

func TestG08ResultsClaimTheNextEventOfTheirAggregate(t *testing.T) {
	t.Parallel()
	b := setup(t, dest("a").on("OrderCreated", "OrderStatusUpdated"))
	for n := 1; n <= 3; n++ {
		b.read("a", event(n, "OrderStatusUpdated", "7", int64(n)))
	}
	o := &offering{places: 9}
	second := b.onward(o, success(b.claim("a")[0]))
	require.Len(t, second, 1, "one at a time, in their order")
	require.Equal(t, eventID(2), second[0].Saga)
	require.JSONEq(t, `{"orderId":"7"}`, string(o.rendered[0].EventBody))
	require.Equal(t, "WAITING", b.saga(3).state("a", "do"))
	third := b.onward(o, success(second[0]))
	require.Equal(t, eventID(3), third[0].Saga)
}

func TestRecentIsForgottenByNumberAndSize(t *testing.T) {
	t.Parallel()
	r := newRecent[replyKey, Response]()
	key := func(n int) replyKey { return replyKey{eventID(n), "a"} }
	for i := range maxRecent + 3 {
		r.keep(map[replyKey]Response{key(i): {Body: []byte("x")}})
	}
	_, ok := r.find(key(2))
	require.False(t, ok)
	_, ok = r.find(key(3))
	require.True(t, ok)
	require.Len(t, r.order, maxRecent)
	big := make([]byte, maxRecentLength)
	for i := range maxRecentBytes/maxRecentLength + 1 {
		r.keep(map[replyKey]Response{key(100_000 + i): {Body: big}})
	}
	require.LessOrEqual(t, r.bytes, maxRecentBytes)
	require.Len(t, r.known, len(r.order))
	r.keep(map[replyKey]Response{key(-1): {Body: append(big, 'x')}})
	_, ok = r.find(key(-1))
	require.False(t, ok)
}
