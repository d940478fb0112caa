package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ebbline/ebb/journal/saga"
)

// Proof is what an operator brings for a step that happened or was done by hand.
type Proof struct {
	// Reply is what the destination answered, or shows; nil if it is not known. Later steps are rendered from it.
	Reply *Response
	// Revert and Undo are what undoing takes, see Recording. Without a reply that the undo request can be rendered from, a do step
	// has RevertBroken, or RevertNone where there is nothing to undo.
	Revert saga.Revert
	Undo   []byte
	// Route is that of the request which Undo undoes.
	Route int
}

// Unsettled is a step that an operator looks at: what its undo request is rendered from.
type Unsettled struct {
	Claimed
	// Sent says that it has a request: Content is empty otherwise.
	Sent bool
}

// Unsettled reads a step for an operator's move. Errors: ErrNoSaga, saga.ErrNoStep.
func (s *Store) Unsettled(ctx context.Context, id saga.ID, dest string, dir saga.Direction) (Unsettled, error) {
	out := Unsettled{Claimed: Claimed{Saga: id, Dest: dest, Dir: dir}}
	var route *int
	err := s.pool.QueryRow(ctx, `SELECT s.aggregate_type, s.aggregate_id, s.event_type, e.body, e.created_at, e.traceparent,
	t.spec_version, t.epoch, t.attempt, t.maybe, r.route, r.content
FROM ebb.sagas s JOIN ebb.events e ON e.id = s.id
JOIN ebb.steps t ON t.saga_id = s.id AND t.destination = $2 AND t.direction = $3
LEFT JOIN ebb.requests r ON r.saga_id = s.id AND r.destination = $2 AND r.direction = $3
WHERE s.id = $1`, [16]byte(id), dest, dir.String()).Scan(&out.Aggregate.Type, &out.Aggregate.ID, &out.EventType, &out.EventBody, &out.EventTime,
		&out.TraceParent, &out.SpecVersion, &out.Epoch, &out.Attempt, &out.Maybe, &route, &out.Content)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return out, fmt.Errorf("saga %s: %w: %s %s", id, saga.ErrNoStep, dest, dir)
	case err != nil:
		return out, fmt.Errorf("saga %s: %w", id, err)
	}
	if out.Sent = route != nil; out.Sent {
		out.Route = *route
	}
	return out, nil
}

// Prove settles a step that an operator has seen to have happened. Errors are those of saga.Aggregate.Prove, ErrNoSaga and
// ErrNoReason, of this and the following moves.
func (s *Store) Prove(ctx context.Context, id saga.ID, dest string, dir saga.Direction, p Proof, by Action) error {
	return s.operate(ctx, id, "resolve "+dest+" "+dir.String()+" as happened", by, func(_ context.Context, u *unit, a *saga.Aggregate) error {
		u.evidenceOf(a, id, dest, dir, p, by)
		return a.Prove(u.env, id, dest, dir, p.Revert)
	})
}

// Done settles a step that an operator has done outside of Ebb; reference is where that is on record.
func (s *Store) Done(ctx context.Context, id saga.ID, dest string, dir saga.Direction, reference string, p Proof, by Action) error {
	return s.operate(ctx, id, "done "+dest+" "+dir.String()+" by hand, "+reference, by, func(_ context.Context, u *unit, a *saga.Aggregate) error {
		u.evidenceOf(a, id, dest, dir, p, by)
		return a.Done(u.env, id, dest, dir, p.Revert, reference)
	})
}

// Disprove lets a step go on, or gives it up, that an operator has seen not to have happened.
func (s *Store) Disprove(ctx context.Context, id saga.ID, dest string, dir saga.Direction, by Action) error {
	return s.operate(ctx, id, "resolve "+dest+" "+dir.String()+" as not happened", by, func(_ context.Context, u *unit, a *saga.Aggregate) error {
		return a.Disprove(u.env, id, dest, dir)
	})
}

// Waive settles a step as needless; what it should have done or undone stays as it is.
func (s *Store) Waive(ctx context.Context, id saga.ID, dest string, dir saga.Direction, by Action) error {
	return s.operate(ctx, id, "waive "+dest+" "+dir.String(), by, func(_ context.Context, u *unit, a *saga.Aggregate) error {
		return a.Waive(u.env, id, dest, dir, by.Reason)
	})
}

// Unwind unwinds a saga that runs or is completed.
func (s *Store) Unwind(ctx context.Context, id saga.ID, by Action) error {
	return s.operate(ctx, id, "compensate", by, func(_ context.Context, u *unit, a *saga.Aggregate) error {
		return a.Compensate(u.env, id, by.Reason)
	})
}

// evidenceOf keeps the reply that an operator brought like one of the destination, and the undo request that was rendered from it.
func (u *unit) evidenceOf(a *saga.Aggregate, id saga.ID, dest string, dir saga.Direction, p Proof, by Action) {
	t := step(a, id, dest, dir)
	if t == nil {
		return
	}
	if dir == saga.Do && p.Revert == saga.RevertPinned {
		u.rows.request(id, &saga.Step{Dest: dest, Dir: saga.Undo, SpecVersion: t.SpecVersion}, p.Route, p.Undo)
	}
	ev := evidence{undo: p.Undo}
	if p.Reply != nil {
		ev.status, ev.response = p.Reply.Status, p.Reply.Body
		u.rows.call(u.env, &Recording{
			Claimed: Claimed{Saga: id, Dest: dest, Dir: dir, Epoch: t.Epoch, Attempt: t.Attempt}, Worker: "operator " + by.Who,
			Result:   saga.Result{Class: saga.ClassSucceeded},
			Exchange: Exchange{Status: p.Reply.Status, Body: p.Reply.Body, Err: "brought by an operator: " + by.Reason},
		}, true, false)
	}
	u.evidence[stepKey{id, dest, dir}] = ev
}
