package saga_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

var update = flag.Bool("update", false, "write the golden files")

// ending is a way for an attempt to end.
type ending struct {
	name    string
	class   saga.Class
	used    bool // the last attempt that is allowed
	healthy bool // other sagas pass
	waited  bool // patience is used up
}

var endings = []ending{
	{name: "SUCCEEDED", class: saga.ClassSucceeded},
	{name: "SKIPPED", class: saga.ClassSkipped},
	{name: "REFUSED", class: saga.ClassRefused},
	{name: "RETRY", class: saga.ClassRetry},
	{name: "RETRY, used up, others fail", class: saga.ClassRetry, used: true},
	{name: "RETRY, used up, others pass", class: saga.ClassRetry, used: true, healthy: true},
	{name: "RETRY, out of patience", class: saga.ClassRetry, waited: true},
	{name: "NOT_SENT", class: saga.ClassNotSent},
	{name: "NOT_SENT, used up, others pass", class: saga.ClassNotSent, used: true, healthy: true},
	{name: "NOT_SENT, out of patience", class: saga.ClassNotSent, waited: true},
	{name: "UNKNOWN", class: saga.ClassUnknown},
	{name: "UNKNOWN, used up, others fail", class: saga.ClassUnknown, used: true},
	{name: "UNKNOWN, used up, others pass", class: saga.ClassUnknown, used: true, healthy: true},
	{name: "UNKNOWN, out of patience", class: saga.ClassUnknown, waited: true},
	{name: "MISCONFIGURED", class: saga.ClassMisconfigured},
	{name: "MISCONFIGURED, others pass", class: saga.ClassMisconfigured, healthy: true},
	{name: "MISCONFIGURED, out of patience", class: saga.ClassMisconfigured, waited: true},
	{name: "PARKED", class: saga.ClassParked},
	{name: "shutdown before send"},
	{name: "shutdown after send"},
	{name: "lease out"},
}

// attempt is an attempt that is out, in an aggregate whose other destination Z keeps the saga from ending.
func attempt(state saga.State, dir saga.Direction, r *saga.Rules, maybe bool, attempts int) (*saga.Aggregate, *saga.Step) {
	s := &saga.Saga{ID: eventID(0), Role: saga.Create, Version: 10, State: state}
	other := &saga.Step{Dest: "Z", Dir: saga.Do, State: saga.Expected, Rules: &saga.Rules{}}
	if state == saga.Completed {
		other.State, other.Seq, other.Revert = saga.Succeeded, 1, saga.RevertNone
	} else if state.Unwinding() {
		// Unresolved for good: nothing else ends.
		other.State, other.Maybe, other.Reason = saga.Parked, true, "kept"
	}
	t := &saga.Step{Dest: "A", Dir: dir, State: saga.Calling, Maybe: maybe, Attempt: attempts, Epoch: 5, Rules: r, FirstAttempt: early}
	t.Late = state == saga.Completed
	if dir == saga.Undo {
		s.Steps = append(s.Steps, &saga.Step{Dest: "A", Dir: saga.Do, State: saga.Succeeded, Seq: 2, Revert: saga.RevertPinned, Rules: r})
	}
	s.Steps = append(s.Steps, other, t)
	return &saga.Aggregate{Sagas: []*saga.Saga{s}}, t
}

// endAttempt ends it, and says what became of the step and, if it changed, of its saga.
func endAttempt(t *testing.T, state saga.State, dir saga.Direction, r saga.Rules, maybe bool, end ending) string {
	t.Helper()
	r.MaxAttempts, r.MaxUndoAttempts, r.Patience = 3, 3, 1_000_000_000
	attempts := 2
	if end.used {
		attempts = 3
	}
	a, step := attempt(state, dir, &r, maybe, attempts)
	env := saga.Env{Now: early}
	if end.waited {
		env.Now = early.Add(r.Patience) + 1
	}
	var err error
	switch {
	case end.class != 0:
		err = a.Record(env, eventID(0), "A", dir, 5, saga.Result{Class: end.class, Reason: "why", Healthy: end.healthy, Revert: saga.RevertPinned})
	case end.name == "lease out":
		err = a.Expire(env, eventID(0), "A", dir)
	default:
		err = a.Release(env, eventID(0), "A", dir, 5, end.name == "shutdown after send")
	}
	require.NoError(t, err)
	out := step.State.String()
	if step.Maybe {
		out += " maybe"
	}
	if step.Attempt != attempts {
		out += " free"
	}
	if step.Outage {
		out += " outage"
	}
	if now := a.Sagas[0].State; now != state {
		out += " → " + now.String()
	}
	return out
}

// TestTransitions compares what every end of an attempt leads to with the golden tables. `free` means that the attempt was not
// charged, `outage` that it fell to the destination's outage, an arrow that the saga moved.
func TestTransitions(t *testing.T) {
	t.Parallel()
	columns := []struct {
		name  string
		dir   saga.Direction
		state saga.State
	}{
		{"do RUNNING", saga.Do, saga.Running},
		{"do FAILING", saga.Do, saga.Failing},
		{"do COMPENSATING", saga.Do, saga.Compensating},
		{"late do COMPLETED", saga.Do, saga.Completed},
		{"undo COMPENSATING", saga.Undo, saga.Compensating},
	}
	for name, r := range map[string]saga.Rules{
		"idempotent":     {Idempotency: saga.Idempotent},
		"success-only":   {Idempotency: saga.SuccessOnly},
		"not-idempotent": {Idempotency: saga.NotIdempotent},
		"refusals-park":  {Idempotency: saga.Idempotent, OnRefused: saga.RefusalParks},
		"refusals-ignored-exhausted-compensates": {Idempotency: saga.Idempotent, OnRefused: saga.RefusalIgnored,
			OnExhausted: saga.ExhaustedCompensates},
		"exhausted-compensates": {Idempotency: saga.Idempotent, OnExhausted: saga.ExhaustedCompensates},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
			fmt.Fprint(table, "end of the attempt")
			for _, c := range columns {
				fmt.Fprint(table, "\t", c.name)
			}
			fmt.Fprintln(table)
			for _, maybe := range []bool{false, true} {
				if maybe && r.Idempotency == saga.NotIdempotent {
					continue // such a step is never called again
				}
				for _, end := range endings {
					what := end.name
					if maybe {
						what = "maybe: " + what
					}
					fmt.Fprint(table, what)
					for _, c := range columns {
						fmt.Fprint(table, "\t", endAttempt(t, c.state, c.dir, r, maybe, end))
					}
					fmt.Fprintln(table)
				}
			}
			require.NoError(t, table.Flush())
			golden(t, name, trimRight(b.String()))
		})
	}
}

func trimRight(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "transitions", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "if the change is meant: go test ./journal/saga -run TestTransitions -update")
}
