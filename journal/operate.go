package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ebbline/ebb/journal/saga"
)

// Action is an operator's move: who did what, and why. It is kept in ebb.operator_actions.
type Action struct {
	Who    string
	Reason string
}

// ErrNoSaga is returned where the saga does not exist.
var ErrNoSaga = errors.New("no such saga")

// ErrNoReason is returned for an operator's move without a name or a reason.
var ErrNoReason = errors.New("an operator's move needs who and why")

// Retry lets a parked step go on with fresh attempts and patience, under the same key. Errors are those of saga.Aggregate.Retry,
// and ErrNoSaga. A do step that was never sent is pinned to the destination's newest version and rendered again: what parked it
// may have been the version.
func (s *Store) Retry(ctx context.Context, id saga.ID, dest string, dir saga.Direction, by Action) error {
	return s.operate(ctx, id, "retry "+dest+" "+dir.String(), by, func(ctx context.Context, u *unit, a *saga.Aggregate) error {
		if err := u.repin(ctx, a, id, dest, dir); err != nil {
			return err
		}
		return a.Retry(u.env, id, dest, dir)
	})
}

// repin moves a parked step that has no request yet to the newest version of its destination.
func (u *unit) repin(ctx context.Context, a *saga.Aggregate, id saga.ID, dest string, dir saga.Direction) error {
	t := step(a, id, dest, dir)
	if t == nil || t.State != saga.Parked || dir != saga.Do {
		return nil
	}
	var rendered bool
	const sql = "SELECT EXISTS (SELECT FROM ebb.requests WHERE saga_id = $1 AND destination = $2 AND direction = 'do')"
	if err := u.tx.QueryRow(ctx, sql, [16]byte(id), dest).Scan(&rendered); err != nil {
		return err
	}
	if rendered {
		return nil
	}
	newest, err := u.store.Latest(ctx, dest)
	if errors.Is(err, ErrUnknownVersion) {
		return nil // removed: the pinned version stays
	}
	if err != nil {
		return err
	}
	t.SpecVersion, t.Rules = newest.Version, newest.Rules
	return nil
}

// operate runs an operator's move on a saga's aggregate, with a row that says what it changed.
func (s *Store) operate(ctx context.Context, id saga.ID, what string, by Action, move func(context.Context, *unit, *saga.Aggregate) error) error {
	if by.Who == "" || by.Reason == "" {
		return ErrNoReason
	}
	owners, err := s.aggregatesOf(ctx, []saga.ID{id})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	key, known := owners[id]
	if !known {
		return fmt.Errorf("%s: %w: %s", what, ErrNoSaga, id)
	}
	return s.transact(ctx, "operate", []need{{key, id, wholeHistory}}, func(u *unit) error {
		l := u.aggs[key]
		if l.err != nil {
			return l.err
		}
		before := snapshot(l.agg, id)
		if err := move(ctx, u, l.agg); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		_, err := u.tx.Exec(ctx, `INSERT INTO ebb.operator_actions (who, action, target, reason, before, after) VALUES ($1, $2, $3, $4, $5, $6)`,
			clean(by.Who), what, id.String(), clean(by.Reason), before, snapshot(l.agg, id))
		return err
	})
}

// snapshot shows a saga's state and its steps' for the record of an operator's move.
func snapshot(a *saga.Aggregate, id saga.ID) []byte {
	s := a.Find(id)
	if s == nil {
		return []byte("{}")
	}
	steps := map[string]string{}
	for _, t := range s.Steps {
		steps[t.Dest+" "+t.Dir.String()] = t.State.String()
	}
	out, err := json.Marshal(map[string]any{"state": s.State.String(), "attention": s.Attention, "steps": steps})
	if err != nil {
		return []byte("{}")
	}
	return out
}
