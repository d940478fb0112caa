package journal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

var by = Action{Who: "operator", Reason: "seen at the destination"}

// lostAt leaves a step parked that may have happened.
func lostAt(t *testing.T, name string) *testBundle {
	t.Helper()
	once := dest(name)
	once.Rules.Idempotency = saga.NotIdempotent
	b := setup(t, once, dest("z", name))
	b.read(name, event(1, "OrderCreated", "7", 1))
	b.read("z", event(1, "OrderCreated", "7", 1))
	b.do(name, saga.Result{Class: saga.ClassUnknown, Reason: "no answer"})
	require.Equal(t, "PARKED", b.saga(1).state(name, "do"))
	return b
}

// compensator lets the compensator take the saga.
func (b *testBundle) compensator(n int) {
	b.t.Helper()
	s := Signal{Position: Position{"comp", 0, int64(n)}, Begin: &Begin{Saga: eventID(n)}}
	require.NoError(b.t, b.Compensate(b.t.Context(), Reader{Name: "ebb.compensator"}, []Signal{s}))
}

func TestProvenStepIsWorthAReply(t *testing.T) {
	t.Parallel()
	b := lostAt(t, "a")
	u, err := b.Unsettled(t.Context(), eventID(1), "a", saga.Do)
	require.NoError(t, err)
	require.True(t, u.Sent)
	require.True(t, u.Maybe)
	require.Equal(t, "call a", string(u.Content))
	require.Equal(t, int64(1), u.Epoch)

	proof := Proof{Reply: &Response{Status: 201, Body: []byte("what it made")}, Revert: saga.RevertPinned, Undo: []byte("undo a")}
	require.NoError(t, b.Prove(t.Context(), eventID(1), "a", saga.Do, proof, by))
	require.Equal(t, []string{"operator: resolve a do as happened: seen at the destination"}, b.actions())
	require.Contains(t, b.published(), "StepSucceeded")
	o := &offering{places: 1}
	got, err := b.Claim(t.Context(), o.offer("z", 1))
	require.NoError(t, err)
	require.Len(t, got.Claimed, 1)
	require.Equal(t, map[string]Response{"a": *proof.Reply}, o.rendered[0].Responses)

	require.NoError(t, b.end(got.Claimed[0], saga.Result{Class: saga.ClassRefused, Reason: "no"}))
	b.compensator(1)
	undo := b.claim("a")
	require.Len(t, undo, 1)
	require.Equal(t, "undo a", string(undo[0].Content))
}

func TestDisprovenStepIsSentAgain(t *testing.T) {
	t.Parallel()
	b := lostAt(t, "a")
	require.NoError(t, b.Disprove(t.Context(), eventID(1), "a", saga.Do, by))
	again := b.claim("a")
	require.Len(t, again, 1)
	require.Equal(t, 1, again[0].Attempt)
	require.Equal(t, int64(2), again[0].Epoch)
	require.ErrorIs(t, b.Disprove(t.Context(), eventID(1), "a", saga.Do, by), saga.ErrMoves)
	require.Len(t, b.actions(), 1, "a move that was refused is none")
}

func TestDoneByHandHasNothingToUndoItWith(t *testing.T) {
	t.Parallel()
	b := lostAt(t, "a")
	require.NoError(t, b.Done(t.Context(), eventID(1), "a", saga.Do, "ticket 7", Proof{Revert: saga.RevertBroken}, by))
	require.Equal(t, "SUCCEEDED", b.saga(1).state("a", "do"))
	require.NoError(t, b.Unwind(t.Context(), eventID(1), by))
	require.ErrorIs(t, b.Unwind(t.Context(), eventID(1), by), saga.ErrEnding)
	b.compensator(1)
	require.Equal(t, "PARKED", b.saga(1).state("a", "undo"))
	require.NoError(t, b.Done(t.Context(), eventID(1), "a", saga.Undo, "ticket 8", Proof{}, by))
	require.Equal(t, "COMPENSATED", b.saga(1).State)
	require.Equal(t, "operator: done a undo by hand, ticket 8: seen at the destination", b.actions()[2])
}

func TestWaivedStepLetsOthersGoOn(t *testing.T) {
	t.Parallel()
	b := lostAt(t, "a")
	require.NoError(t, b.Waive(t.Context(), eventID(1), "a", saga.Do, by))
	require.Equal(t, "SKIPPED", b.saga(1).state("a", "do"))
	b.do("z", yes)
	require.Equal(t, "COMPLETED", b.saga(1).State)
}

func TestMovesNeedWhoWhyAndWhat(t *testing.T) {
	t.Parallel()
	b := lostAt(t, "a")
	require.ErrorIs(t, b.Waive(t.Context(), eventID(1), "a", saga.Do, Action{Who: "operator"}), ErrNoReason)
	require.ErrorIs(t, b.Waive(t.Context(), eventID(9), "a", saga.Do, by), ErrNoSaga)
	require.ErrorIs(t, b.Waive(t.Context(), eventID(1), "x", saga.Do, by), saga.ErrNoStep)
	_, err := b.Unsettled(t.Context(), eventID(1), "x", saga.Do)
	require.ErrorIs(t, err, saga.ErrNoStep)
}
