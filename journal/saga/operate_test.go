package saga_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// parked is an aggregate with one parked step of destination A.
func parked(state saga.State, dir saga.Direction, change func(*saga.Step)) (*saga.Aggregate, *saga.Step) {
	a, step := attempt(state, dir, &saga.Rules{Idempotency: saga.Idempotent, MaxAttempts: 3, MaxUndoAttempts: 3}, false, 3)
	step.State, step.Reason, step.Outage = saga.Parked, "why", true
	if change != nil {
		change(step)
	}
	a.Touch(saga.Env{Now: early})
	a.TakeEmissions()
	return a, step
}

func TestRetry(t *testing.T) {
	t.Parallel()
	passed := func(t *saga.Step) { t.Rules = &saga.Rules{Ordering: saga.OrderPass} }
	notIdempotent := &saga.Rules{Idempotency: saga.NotIdempotent, MaxAttempts: 3, MaxUndoAttempts: 3}
	for name, c := range map[string]struct {
		state  saga.State
		dir    saga.Direction
		change func(*saga.Step)
		err    error
		want   saga.StepState
	}{
		"a parked step goes on":                 {state: saga.Running, dir: saga.Do, want: saga.Ready},
		"one that may have happened, too":       {state: saga.Running, dir: saga.Do, change: func(t *saga.Step) { t.Maybe = true }, want: saga.Ready},
		"of an unwinding saga, it is found out": {state: saga.Compensating, dir: saga.Do, change: func(t *saga.Step) { t.Maybe = true }, want: saga.Resolving},
		"a late step of a completed saga":       {state: saga.Completed, dir: saga.Do, want: saga.Ready},
		"an undo step":                          {state: saga.Compensating, dir: saga.Undo, want: saga.Ready},
		"a step that is not parked": {state: saga.Running, dir: saga.Do, change: func(t *saga.Step) { t.State = saga.Waiting },
			err: saga.ErrNotParked, want: saga.Ready},
		"a settled step": {state: saga.Running, dir: saga.Do, change: func(t *saga.Step) { t.State = saga.Refused },
			err: saga.ErrNotParked, want: saga.Refused},
		"a superseded step": {state: saga.Running, dir: saga.Do, change: func(t *saga.Step) { t.Superseded = true },
			err: saga.ErrSuperseded, want: saga.Parked},
		"one that may have happened and cannot be repeated": {state: saga.Running, dir: saga.Do,
			change: func(t *saga.Step) { t.Maybe, t.Rules = true, notIdempotent }, err: saga.ErrUnresolved, want: saga.Parked},
		"an undo that may have happened and cannot be repeated": {state: saga.Compensating, dir: saga.Undo,
			change: func(t *saga.Step) { t.Maybe, t.Rules = true, notIdempotent }, err: saga.ErrUnresolved, want: saga.Parked},
		"one whose key is forgotten": {state: saga.Running, dir: saga.Do, change: func(t *saga.Step) {
			t.Maybe, t.FirstSent = true, early
			t.Rules = &saga.Rules{Idempotency: saga.Idempotent, Window: time.Microsecond}
		}, err: saga.ErrUnresolved, want: saga.Parked},
		"one that a later event has passed": {state: saga.Running, dir: saga.Do, change: passed,
			err: saga.ErrSuperseded, want: saga.Parked},
		"a late one that a later event has passed": {state: saga.Completed, dir: saga.Do, change: passed,
			err: saga.ErrSuperseded, want: saga.Parked},
		"one that cannot be repeated, but certainly did not happen": {state: saga.Running, dir: saga.Do,
			change: func(t *saga.Step) { t.Rules = notIdempotent }, want: saga.Ready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, step := parked(c.state, c.dir, c.change)
			if step.Rules.Ordering == saga.OrderPass {
				later := &saga.Step{Dest: "A", Dir: saga.Do, State: saga.Calling, Epoch: 1, Rules: step.Rules}
				a.Sagas = append(a.Sagas, &saga.Saga{ID: eventID(1), Version: 20, State: saga.Running, Steps: []*saga.Step{later}})
			}
			err := a.Retry(saga.Env{Now: overdue}, eventID(0), "A", c.dir)
			require.Equal(t, c.want, step.State)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Zero(t, step.Attempt, "fresh attempts")
			require.Zero(t, step.FirstAttempt, "fresh patience")
			require.False(t, step.Outage)
			require.Equal(t, int64(5), step.Epoch, "the epoch still fences the earlier attempts")
			require.Equal(t, overdue, step.Due)
		})
	}
}

func TestRetryOfNothing(t *testing.T) {
	t.Parallel()
	a, _ := parked(saga.Running, saga.Do, nil)
	env := saga.Env{Now: early}
	require.ErrorIs(t, a.Retry(env, eventID(1), "A", saga.Do), saga.ErrNoStep)
	require.ErrorIs(t, a.Retry(env, eventID(0), "B", saga.Do), saga.ErrNoStep)
	require.ErrorIs(t, a.Retry(env, eventID(0), "A", saga.Undo), saga.ErrNoStep)
}

func TestRetryOfBrokenUndo(t *testing.T) {
	t.Parallel()
	a, step := parked(saga.Compensating, saga.Undo, nil)
	a.Sagas[0].Step("A", saga.Do).Revert = saga.RevertBroken
	require.ErrorIs(t, a.Retry(saga.Env{Now: early}, eventID(0), "A", saga.Undo), saga.ErrNoUndo)
	require.Equal(t, saga.Parked, step.State)
}

func kinds(ems []saga.Emission) []saga.Kind {
	var out []saga.Kind
	for i := range ems {
		out = append(out, ems[i].Kind)
	}
	return out
}

// A second cancel, of the same or of a lower version, changes nothing and publishes nothing.
func TestG11CancelTwice(t *testing.T) {
	t.Parallel()
	b := bounds{plans: [][]int{{0}, {0}}, roles: []saga.Role{saga.Create, saga.Change}, rules: []saga.Rules{after()}}
	w := newWorld(&b)
	w.ingest(0, 0)
	w.ingest(1, 0)
	w.agg.TakeEmissions()

	w.agg.Cancel(w.env(), 15, "the customer changed their mind")
	require.Equal(t, []saga.Kind{saga.CompensationRequested}, kinds(w.agg.TakeEmissions()))
	first, second := w.saga(0), w.saga(1)
	require.Equal(t, saga.Failing, first.State)
	require.Equal(t, int64(15), first.CancelVersion)
	require.Equal(t, "the customer changed their mind", first.Reason)
	require.Equal(t, saga.Running, second.State, "it is above the cancel")
	require.Equal(t, saga.Waiting, w.step(1, 0, do).State, "and waits until the earlier one is unwound")

	w.agg.Cancel(w.env(), 15, "again")
	w.agg.Cancel(w.env(), 5, "an older one")
	require.Empty(t, w.agg.TakeEmissions())
	require.Equal(t, int64(15), w.agg.Tombstone)
	require.Equal(t, "the customer changed their mind", first.Reason)

	w.agg.Begin(w.env(), eventID(0))
	require.Equal(t, []saga.Kind{saga.SagaCompensated}, kinds(w.agg.TakeEmissions()))
	require.Equal(t, saga.Ready, w.step(1, 0, do).State)

	w.agg.Cancel(w.env(), 99, "all of it")
	require.Equal(t, []saga.Kind{saga.CompensationRequested}, kinds(w.agg.TakeEmissions()), "of the saga that still ran")
	require.Equal(t, int64(15), first.CancelVersion)
	require.Equal(t, int64(99), second.CancelVersion)
}

// What is read after its cancel is born COMPENSATED and published once.
func TestG11CancelBeforeTheEventIsRead(t *testing.T) {
	t.Parallel()
	b := bounds{plans: [][]int{{0}}, roles: []saga.Role{saga.Create}, rules: []saga.Rules{after()}}
	w := newWorld(&b)
	w.agg.Cancel(w.env(), 15, "cancelled")
	w.ingest(0, 0)
	w.ingest(0, 0)
	require.Equal(t, []saga.Kind{saga.SagaCompensated}, kinds(w.agg.TakeEmissions()))
	require.Equal(t, saga.Compensated, w.saga(0).State)
	require.Equal(t, saga.Abandoned, w.step(0, 0, do).State)
	_, err := w.agg.Claim(w.env(), eventID(0), "A", saga.Do, "w", overdue)
	require.ErrorIs(t, err, saga.ErrNotClaimable)
}

// A result under another epoch changes nothing, unless it is a success: that is proof, and is undone where the saga was unwound.
func TestG05FencedResultsAndLateSuccess(t *testing.T) {
	t.Parallel()
	for _, class := range []saga.Class{saga.ClassSkipped, saga.ClassRefused, saga.ClassRetry, saga.ClassNotSent, saga.ClassUnknown,
		saga.ClassMisconfigured, saga.ClassParked} {
		for _, epoch := range []int64{0, 4, 6} {
			a, step := attempt(saga.Running, saga.Do, &saga.Rules{Idempotency: saga.Idempotent, MaxAttempts: 3}, false, 1)
			before := *step
			err := a.Record(saga.Env{Now: early}, eventID(0), "A", saga.Do, epoch, saga.Result{Class: class})
			require.ErrorIs(t, err, saga.ErrFenced)
			require.Equal(t, before, *step)
			require.ErrorIs(t, a.Release(saga.Env{Now: early}, eventID(0), "A", saga.Do, epoch, true), saga.ErrFenced)
			require.Equal(t, before, *step)
		}
	}

	b := bounds{plans: [][]int{{0}}, roles: []saga.Role{saga.Create}, rules: []saga.Rules{after()}}
	w := newWorld(&b)
	w.ingest(0, 0)
	step := w.step(0, 0, do)
	step.State = saga.Refused
	w.saga(0).State = saga.Compensated
	w.agg.TakeEmissions()
	require.NoError(t, w.agg.Record(w.env(), eventID(0), "A", saga.Do, 0, saga.Result{Class: saga.ClassSucceeded, Revert: saga.RevertPinned}))
	require.Equal(t, saga.Succeeded, step.State)
	require.Equal(t, saga.Compensating, w.saga(0).State, "the saga is unwound again")
	require.Equal(t, saga.Ready, w.step(0, 0, undo).State)
	require.NoError(t, w.agg.Record(w.env(), eventID(0), "A", saga.Do, 0, saga.Result{Class: saga.ClassSucceeded}), "told twice")
	require.Equal(t, []saga.Kind{saga.StepSucceeded}, kinds(w.agg.TakeEmissions()))
	require.Equal(t, int64(1), step.Seq)
}

func TestClaimNeedsItsTime(t *testing.T) {
	t.Parallel()
	b := bounds{plans: [][]int{{0}}, roles: []saga.Role{saga.Create}, rules: []saga.Rules{after()}}
	w := newWorld(&b)
	w.ingest(0, 0)
	step := w.step(0, 0, do)
	step.Due = overdue
	_, err := w.agg.Claim(saga.Env{Now: overdue - 1}, eventID(0), "A", saga.Do, "w", overdue)
	require.ErrorIs(t, err, saga.ErrNotClaimable)
	lease := overdue.Add(time.Second)
	epoch, err := w.agg.Claim(saga.Env{Now: overdue}, eventID(0), "A", saga.Do, "w", lease)
	require.NoError(t, err)
	require.Equal(t, int64(1), epoch)
	require.Equal(t, saga.Calling, step.State)
	require.Equal(t, "w", step.Worker)
	require.Equal(t, overdue, step.FirstAttempt)

	_, err = w.agg.Claim(saga.Env{Now: lease}, eventID(0), "A", saga.Do, "v", lease)
	require.ErrorIs(t, err, saga.ErrNotClaimable, "it is out")
	require.ErrorIs(t, w.agg.Expire(saga.Env{Now: lease - 1}, eventID(0), "A", saga.Do), saga.ErrFenced, "its lease has not run out")
	require.NoError(t, w.agg.Expire(saga.Env{Now: lease}, eventID(0), "A", saga.Do))
	require.True(t, step.Maybe)
	require.ErrorIs(t, w.agg.Expire(saga.Env{Now: lease}, eventID(0), "A", saga.Do), saga.ErrFenced)
	_, err = w.agg.Claim(saga.Env{Now: lease}, eventID(1), "A", saga.Do, "w", lease)
	require.ErrorIs(t, err, saga.ErrNoStep)
}

// A saga's events carry rising revisions and a copy that later transitions do not change.
func TestEmissionsAreCopies(t *testing.T) {
	t.Parallel()
	b := bounds{plans: [][]int{{0}}, roles: []saga.Role{saga.Create}, rules: []saga.Rules{after()}}
	w := newWorld(&b)
	w.ingest(0, 0)
	_, err := w.agg.Claim(w.env(), eventID(0), "A", saga.Do, "w", early)
	require.NoError(t, err)
	require.NoError(t, w.agg.Record(w.env(), eventID(0), "A", saga.Do, 1, saga.Result{Class: saga.ClassSucceeded, Revert: saga.RevertPinned}))
	done := w.agg.TakeEmissions()
	require.Equal(t, []saga.Kind{saga.StepSucceeded, saga.SagaCompleted}, kinds(done))
	require.Equal(t, int64(1), done[0].Step.Seq)
	require.Equal(t, saga.Running, done[0].Saga.State)
	require.Nil(t, done[0].Saga.Steps)
	require.Equal(t, saga.Completed, done[1].Saga.State)
	require.Equal(t, int64(1), done[1].Saga.Revision)
	require.Empty(t, w.agg.TakeEmissions())

	w.agg.Cancel(w.env(), 99, "cancelled")
	w.agg.Begin(w.env(), eventID(0))
	require.Equal(t, saga.Completed, done[1].Saga.State)
	require.Len(t, done[1].Saga.Steps, 1)
	_, err = w.agg.Claim(w.env(), eventID(0), "A", saga.Undo, "w", early)
	require.NoError(t, err)
	require.NoError(t, w.agg.Record(w.env(), eventID(0), "A", saga.Undo, 1, saga.Result{Class: saga.ClassSucceeded}))
	undone := w.agg.TakeEmissions()
	require.Equal(t, []saga.Kind{saga.CompensationRequested, saga.StepUndone, saga.SagaCompensated}, kinds(undone))
	require.Equal(t, int64(2), undone[2].Saga.Revision)
}

// look is an operator's answer for a step.
type look func(a *saga.Aggregate, dir saga.Direction) error

func proves(a *saga.Aggregate, dir saga.Direction) error {
	return a.Prove(saga.Env{Now: overdue}, eventID(0), "A", dir, saga.RevertNone)
}

func disproves(a *saga.Aggregate, dir saga.Direction) error {
	return a.Disprove(saga.Env{Now: overdue}, eventID(0), "A", dir)
}

func doesByHand(a *saga.Aggregate, dir saga.Direction) error {
	return a.Done(saga.Env{Now: overdue}, eventID(0), "A", dir, saga.RevertBroken, "ticket 7")
}

func waives(a *saga.Aggregate, dir saga.Direction) error {
	return a.Waive(saga.Env{Now: overdue}, eventID(0), "A", dir, "the goods are gone")
}

func TestOperatorsLook(t *testing.T) {
	t.Parallel()
	maybe := func(t *saga.Step) { t.Maybe = true }
	in := func(s saga.StepState) func(*saga.Step) { return func(t *saga.Step) { t.State, t.Maybe = s, true } }
	for name, c := range map[string]struct {
		look   look
		state  saga.State
		dir    saga.Direction
		change func(*saga.Step)
		err    error
		step   saga.StepState
		says   string
	}{
		"it happened":                  {proves, saga.Running, saga.Do, maybe, nil, saga.Succeeded, "an operator saw that it happened"},
		"it happened, in an unwinding": {proves, saga.Compensating, saga.Do, maybe, nil, saga.Succeeded, "an operator saw that it happened"},
		"the undo happened":            {proves, saga.Compensating, saga.Undo, maybe, nil, saga.Succeeded, "an operator saw that it happened"},
		"it is being resolved":         {proves, saga.Compensating, saga.Do, in(saga.Resolving), nil, saga.Succeeded, "an operator saw that it happened"},
		"an attempt is out":            {proves, saga.Running, saga.Do, in(saga.Calling), saga.ErrMoves, saga.Calling, ""},
		"it is settled":                {proves, saga.Running, saga.Do, in(saga.Refused), saga.ErrMoves, saga.Refused, ""},

		"it did not happen":                  {disproves, saga.Running, saga.Do, maybe, nil, saga.Ready, ""},
		"it did not happen, in an unwinding": {disproves, saga.Compensating, saga.Do, maybe, nil, saga.Abandoned, "an operator saw that it did not happen"},
		"the undo did not happen":            {disproves, saga.Compensating, saga.Undo, maybe, nil, saga.Ready, ""},
		"it certainly did not happen":        {disproves, saga.Running, saga.Do, nil, saga.ErrCertain, saga.Parked, ""},
		"it did not happen, and is late": {disproves, saga.Running, saga.Do, func(t *saga.Step) { t.Maybe, t.Superseded = true, true },
			nil, saga.Parked, ""},
		"not while an attempt is out": {disproves, saga.Running, saga.Do, in(saga.Calling), saga.ErrMoves, saga.Calling, ""},

		"done by hand":                  {doesByHand, saga.Running, saga.Do, nil, nil, saga.Succeeded, "done by hand: ticket 7"},
		"undone by hand":                {doesByHand, saga.Compensating, saga.Undo, nil, nil, saga.Succeeded, "done by hand: ticket 7"},
		"by hand while an attempt runs": {doesByHand, saga.Running, saga.Do, in(saga.Calling), saga.ErrMoves, saga.Calling, ""},

		"waived":                             {waives, saga.Running, saga.Do, maybe, nil, saga.Skipped, "waived"},
		"a destination that never reads":     {waives, saga.Running, saga.Do, in(saga.Expected), nil, saga.Skipped, "waived"},
		"the undo is waived":                 {waives, saga.Compensating, saga.Undo, maybe, nil, saga.Skipped, "waived"},
		"not waived while an attempt is out": {waives, saga.Compensating, saga.Undo, in(saga.Calling), saga.ErrMoves, saga.Calling, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, step := parked(c.state, c.dir, c.change)
			err := c.look(a, c.dir)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.step, step.State)
			require.Equal(t, c.says, step.Outcome)
			if c.err == nil {
				require.False(t, step.Maybe)
			}
		})
	}
	a, _ := parked(saga.Running, saga.Do, nil)
	for _, say := range []look{proves, disproves, doesByHand, waives} {
		require.ErrorIs(t, say(a, saga.Undo), saga.ErrNoStep)
	}
}

// What is undone by hand comes after what depended on it.
func TestG07DoneByHandInItsTurn(t *testing.T) {
	t.Parallel()
	b := bounds{plans: [][]int{{0, 1}}, roles: []saga.Role{saga.Create}, rules: []saga.Rules{after(), after("A")}}
	b.revert[0][0] = saga.RevertBroken
	w := newWorld(&b)
	for d := range 2 {
		w.ingest(0, d)
		w.claim(0, d, do)
		w.record(0, d, do, callYes, saga.Result{Class: saga.ClassSucceeded, Revert: w.revert(0, d)})
	}
	require.NoError(t, w.agg.Compensate(w.env(), eventID(0), "a wish"))
	require.ErrorIs(t, w.agg.Compensate(w.env(), eventID(0), "a wish"), saga.ErrEnding)
	w.agg.Begin(w.env(), eventID(0))
	require.ErrorIs(t, w.agg.Done(w.env(), eventID(0), "A", saga.Undo, 0, "x"), saga.ErrEarly)
	require.NoError(t, w.agg.Done(w.env(), eventID(0), "B", saga.Undo, 0, "x"))
	require.NoError(t, w.agg.Done(w.env(), eventID(0), "A", saga.Undo, 0, "x"))
	require.Equal(t, saga.Compensated, w.saga(0).State)
}

// An operator's unwinding reaches as far as a refusal.
func TestCompensate(t *testing.T) {
	t.Parallel()
	b := bounds{plans: [][]int{{0}, {0}}, roles: []saga.Role{saga.Create, saga.Change}, rules: []saga.Rules{after()}}
	w := newWorld(&b)
	w.ingest(0, 0)
	w.ingest(1, 0)
	require.ErrorIs(t, w.agg.Compensate(w.env(), eventID(7), "a wish"), saga.ErrNoStep)
	require.NoError(t, w.agg.Compensate(w.env(), eventID(0), "a wish"))
	require.Equal(t, []saga.Kind{saga.CompensationRequested, saga.CompensationRequested}, kinds(w.agg.TakeEmissions()))
	require.Equal(t, "a wish", w.saga(0).Reason)
	require.Equal(t, saga.Failing, w.saga(1).State)
}
