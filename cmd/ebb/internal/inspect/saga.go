package inspect

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// Versions gives registered versions of destinations.
type Versions interface {
	VersionOf(ctx context.Context, name string, version int) (*journal.Version, error)
}

// Saga is a saga with everything that was tried for it.
type Saga struct {
	journal.SagaView
	Steps []Step `json:"steps"`
}

// Step is a step with its attempts and what it waits for.
type Step struct {
	journal.StepView
	// MaxAttempts is how often its destination's version lets it be tried; 0 if that is not known.
	MaxAttempts int       `json:"maxAttempts,omitempty"`
	Attempts    []Attempt `json:"attempts"`
	// Waits says what an unsettled step waits for and why; empty for a settled one.
	Waits string `json:"waits,omitempty"`
	// Next is the command that lets a parked step go on; empty for others.
	Next string `json:"next,omitempty"`
}

// Sagas adds attempts and waits to sagas that the journal has shown.
func Sagas(ctx context.Context, pool *pgxpool.Pool, versions Versions, views []journal.SagaView) ([]Saga, error) {
	ids := make([]saga.ID, len(views))
	for i, v := range views {
		var err error
		if ids[i], err = saga.ParseID(v.ID); err != nil {
			return nil, err
		}
	}
	tried, err := attempts(ctx, pool, ids)
	if err != nil {
		return nil, err
	}
	before, err := earlier(ctx, pool, views)
	if err != nil {
		return nil, err
	}
	out := make([]Saga, len(views))
	for i, v := range views {
		out[i] = Saga{SagaView: v, Steps: make([]Step, len(v.Steps))}
		for j, t := range v.Steps {
			step := Step{StepView: t, Attempts: tried[stepKey{v.ID, t.Destination, t.Direction}]}
			if step.Attempts == nil {
				step.Attempts = []Attempt{}
			}
			var rules *saga.Rules
			if version, err := versions.VersionOf(ctx, t.Destination, t.Version); err == nil {
				rules = version.Rules
				step.MaxAttempts = most(rules, t.Direction)
			}
			step.Waits = waits(v, t, rules, before[v.ID])
			if t.State == saga.Parked.String() {
				step.Next = next(v.ID, t, rules)
			}
			out[i].Steps[j] = step
		}
	}
	return out, nil
}

// next is the command that can settle a parked step, or let it go on.
func next(id string, t journal.StepView, rules *saga.Rules) string {
	step := id + " " + t.Destination + " " + t.Direction
	switch {
	case t.Maybe && rules != nil && rules.Idempotency == saga.NotIdempotent && !rules.Lookup:
		return "ebb saga resolve " + step + " --happened --reply FILE --reason TEXT, or --not-happened"
	case t.Direction == saga.Undo.String() && strings.HasPrefix(t.Reason, saga.NoUndoRequest):
		return "ebb saga done " + step + " --reference WHERE --reason TEXT, once it is undone by hand"
	}
	return "ebb saga retry " + step + " --reason TEXT"
}

func most(r *saga.Rules, direction string) int {
	if direction == saga.Undo.String() {
		return r.MaxUndoAttempts
	}
	return r.MaxAttempts
}
