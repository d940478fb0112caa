package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// ahead is what an earlier saga of the same aggregate still has open.
type ahead struct {
	saga, state, attention string
	version                int64
	open                   map[string]string // unsettled do steps by destination, with their states
}

// longest is how many open earlier sagas of an aggregate are looked at: the nearest are what a step waits for.
const longest = 200

// earlier finds, for sagas with steps that wait, the earlier sagas of their aggregates that are not at their ends, the nearest first.
func earlier(ctx context.Context, pool *pgxpool.Pool, views []journal.SagaView) (map[string][]ahead, error) {
	out := map[string][]ahead{}
	for _, v := range views {
		if !slices.ContainsFunc(v.Steps, func(t journal.StepView) bool { return t.State == saga.Waiting.String() }) {
			continue
		}
		rows, err := pool.Query(ctx, `SELECT s.id::text, s.aggregate_version, s.state, s.attention,
	coalesce((SELECT jsonb_object_agg(t.destination, t.state) FROM ebb.steps t
		WHERE t.saga_id = s.id AND t.direction = 'do' AND t.state NOT IN ('SUCCEEDED', 'SKIPPED', 'REFUSED', 'ABANDONED')), '{}')
FROM ebb.sagas s
WHERE s.aggregate_type = $1 AND s.aggregate_id = $2 AND s.aggregate_version < $3
	AND (s.state IN ('RUNNING', 'FAILING', 'COMPENSATING') OR s.attention <> '' OR s.late_open)
ORDER BY s.aggregate_version DESC LIMIT $4`, v.Aggregate, v.AggregateID, v.Version, longest)
		if err != nil {
			return nil, fmt.Errorf("read earlier sagas: %w", err)
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a ahead, err error) {
			return a, row.Scan(&a.saga, &a.version, &a.state, &a.attention, &a.open)
		})
		if err != nil {
			return nil, fmt.Errorf("read earlier sagas: %w", err)
		}
		out[v.ID] = list
	}
	return out, nil
}

// waits says what a step waits for and why; rules may be nil.
func waits(v journal.SagaView, t journal.StepView, rules *saga.Rules, before []ahead) string {
	state, err := saga.ParseStepState(t.State)
	if err != nil {
		return ""
	}
	switch state {
	case saga.Expected:
		return "its consumer has not read the event yet"
	case saga.Ready:
		if t.Attempt > 0 {
			return "for its next attempt" + due(t) + of(t.Reason)
		}
		return "for a free place at its consumer" + due(t) + of(t.Reason)
	case saga.Calling:
		return "for the destination's answer"
	case saga.Resolving:
		if rules != nil && rules.Lookup && t.Direction == saga.Do.String() {
			return "it may have happened: the destination is asked whether it did" + due(t) + of(t.Reason)
		}
		return "it may have happened: sent again under the same key" + due(t) + of(t.Reason)
	case saga.Parked:
		return "for an operator" + of(t.Reason)
	case saga.Waiting:
		if t.Direction == saga.Undo.String() {
			return undoWaits(v, t)
		}
		return doWaits(v, t, rules, before)
	}
	return ""
}

func due(t journal.StepView) string {
	if t.DueAt == nil {
		return ""
	}
	return ", due " + t.DueAt.UTC().Format(time.RFC3339)
}

func of(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func doWaits(v journal.SagaView, t journal.StepView, rules *saga.Rules, before []ahead) string {
	if s, err := saga.ParseState(v.State); err == nil && s.Unwinding() {
		return "its saga is being unwound"
	}
	if rules != nil {
		if names := unsettled(v, rules.After); len(names) > 0 {
			return "for " + strings.Join(names, ", ")
		}
	}
	for _, a := range before {
		if a.state == saga.Failing.String() || a.state == saga.Compensating.String() {
			return fmt.Sprintf("for the unwinding of saga %s (version %d)%s", a.saga, a.version, of(a.attention))
		}
		if state := a.open[t.Destination]; state != "" {
			return fmt.Sprintf("behind saga %s (version %d), which is %s here%s", a.saga, a.version, state, of(a.attention))
		}
	}
	return "for its turn"
}

// unsettled lists the steps of names that have not passed, with their states.
func unsettled(v journal.SagaView, names []string) []string {
	var out []string
	for _, t := range v.Steps {
		if t.Direction != saga.Do.String() || !slices.Contains(names, t.Destination) {
			continue
		}
		if state, err := saga.ParseStepState(t.State); err == nil && !state.Settled() {
			out = append(out, t.Destination+" ("+t.State+")")
		}
	}
	return out
}

// undoWaits lists what was completed later and is not undone: undo goes in the reverse of the completion (G7).
func undoWaits(v journal.SagaView, t journal.StepView) string {
	seq := map[string]int64{}
	for _, s := range v.Steps {
		if s.Direction == saga.Do.String() {
			seq[s.Destination] = s.Seq
		}
	}
	var names []string
	for _, s := range v.Steps {
		state, err := saga.ParseStepState(s.State)
		if err != nil || s.Direction != saga.Undo.String() || state.Settled() || seq[s.Destination] <= seq[t.Destination] {
			continue
		}
		names = append(names, s.Destination+" ("+s.State+")")
	}
	if len(names) == 0 {
		return "for its turn in the unwinding"
	}
	return "until this is undone: " + strings.Join(names, ", ")
}
