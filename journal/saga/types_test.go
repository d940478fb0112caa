package saga_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ebbline/ebb/journal/saga"
)

func TestParseID(t *testing.T) {
	t.Parallel()
	const text = "0198c2f4-7a3b-7c11-9d2e-0a1b2c3d4e5f"
	id, err := saga.ParseID(text)
	require.NoError(t, err)
	require.Equal(t, text, id.String())
	require.False(t, id.IsZero())
	require.True(t, saga.ID{}.IsZero())
	upper, err := saga.ParseID(strings.ToUpper(text))
	require.NoError(t, err)
	require.Equal(t, id, upper)

	for name, bad := range map[string]string{
		"empty":             "",
		"short":             text[:35],
		"long":              text + "0",
		"no hyphens":        strings.ReplaceAll(text, "-", "0"),
		"hyphen elsewhere":  "0198c2f47-a3b-7c11-9d2e-0a1b2c3d4e5f",
		"not hexadecimal":   "g" + text[1:],
		"a hyphen too many": text[:35] + "-",
		"braces":            "{" + text[1:35] + "}",
		"multi-byte":        text[:33] + "é" + "f",
	} {
		_, err := saga.ParseID(bad)
		require.ErrorIs(t, err, saga.ErrID, name)
		require.NotContains(t, err.Error(), text[:8], "the error shows the shape, not the value")
	}
}

func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"", "0198c2f4-7a3b-7c11-9d2e-0a1b2c3d4e5f", "0198C2F4-7A3B-7C11-9D2E-0A1B2C3D4E5F", strings.Repeat("-", 36), strings.Repeat("é", 18)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := saga.ParseID(text)
		if err != nil {
			require.ErrorIs(t, err, saga.ErrID)
			require.True(t, id.IsZero())
			return
		}
		require.Equal(t, strings.ToLower(text), id.String())
		again, err := saga.ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}

// names are a type's values by their texts; each text reads back as its value, and nothing else reads.
func names[T interface {
	comparable
	String() string
}](t *testing.T, parse func(string) (T, error), want map[string]T) {
	t.Helper()
	for text, v := range want {
		got, err := parse(text)
		require.NoError(t, err)
		require.Equal(t, v, got)
		require.Equal(t, text, v.String())
	}
	for _, bad := range []string{"nonsense", "running", "DO", "invalid(7)", " "} {
		_, err := parse(bad)
		require.ErrorContains(t, err, "unknown")
		require.ErrorContains(t, err, bad)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	names(t, saga.ParseState, map[string]saga.State{
		"RUNNING": saga.Running, "FAILING": saga.Failing, "COMPENSATING": saga.Compensating, "COMPLETED": saga.Completed,
		"COMPENSATED": saga.Compensated,
	})
	names(t, saga.ParseStepState, map[string]saga.StepState{
		"EXPECTED": saga.Expected, "WAITING": saga.Waiting, "READY": saga.Ready, "CALLING": saga.Calling, "RESOLVING": saga.Resolving,
		"PARKED": saga.Parked, "SUCCEEDED": saga.Succeeded, "SKIPPED": saga.Skipped, "REFUSED": saga.Refused, "ABANDONED": saga.Abandoned,
	})
	names(t, saga.ParseDirection, map[string]saga.Direction{"do": saga.Do, "undo": saga.Undo})
	names(t, saga.ParseRole, map[string]saga.Role{"create": saga.Create, "change": saga.Change, "cancel": saga.Cancelling})
	names(t, saga.ParseRevert, map[string]saga.Revert{"": 0, "none": saga.RevertNone, "pinned": saga.RevertPinned, "broken": saga.RevertBroken})
	for what, parse := range map[string]func(string) error{
		"state":      func(s string) error { _, err := saga.ParseState(s); return err },
		"step state": func(s string) error { _, err := saga.ParseStepState(s); return err },
		"direction":  func(s string) error { _, err := saga.ParseDirection(s); return err },
		"role":       func(s string) error { _, err := saga.ParseRole(s); return err },
	} {
		require.ErrorContains(t, parse(""), "unknown", "the empty text is no "+what)
	}
	require.Equal(t, "invalid(99)", saga.State(99).String())
	require.Equal(t, "MISCONFIGURED", saga.ClassMisconfigured.String())
	require.Equal(t, "CompensationRequested", saga.CompensationRequested.String())
}

func TestRulesText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]saga.Idempotency{"none": saga.NotIdempotent, "success_only": saga.SuccessOnly, "all": saga.Idempotent} {
		var got saga.Idempotency
		require.NoError(t, got.UnmarshalText([]byte(text)))
		require.Equal(t, want, got)
		back, err := got.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	}
	for text, want := range map[string]saga.OnRefused{"compensate": saga.RefusalCompensates, "park": saga.RefusalParks, "ignore": saga.RefusalIgnored} {
		var got saga.OnRefused
		require.NoError(t, got.UnmarshalText([]byte(text)))
		require.Equal(t, want, got)
		back, err := got.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	}
	for text, want := range map[string]saga.OnExhausted{"park": saga.ExhaustedParks, "compensate": saga.ExhaustedCompensates} {
		var got saga.OnExhausted
		require.NoError(t, got.UnmarshalText([]byte(text)))
		require.Equal(t, want, got)
		back, err := got.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	}
	for text, want := range map[string]saga.Ordering{"hold": saga.OrderHold, "pass": saga.OrderPass, "none": saga.OrderNone} {
		var got saga.Ordering
		require.NoError(t, got.UnmarshalText([]byte(text)))
		require.Equal(t, want, got)
		back, err := got.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	}
	var i saga.Idempotency
	require.ErrorContains(t, i.UnmarshalText(nil), "unknown idempotency")
}

func TestStatePredicates(t *testing.T) {
	t.Parallel()
	for s, want := range map[saga.State]struct{ open, unwinding bool }{
		saga.Running: {true, false}, saga.Failing: {true, true}, saga.Compensating: {true, true}, saga.Completed: {}, saga.Compensated: {},
	} {
		require.Equal(t, want.open, s.Open(), s)
		require.Equal(t, want.unwinding, s.Unwinding(), s)
	}
	for s := saga.Expected; s <= saga.Abandoned; s++ {
		settled := s == saga.Succeeded || s == saga.Skipped || s == saga.Refused || s == saga.Abandoned
		require.Equal(t, settled, s.Settled(), s)
	}
}

func TestInstant(t *testing.T) {
	t.Parallel()
	require.Zero(t, saga.At(time.Time{}))
	require.True(t, saga.Instant(0).Time().IsZero())
	at := time.Date(2026, 11, 30, 12, 0, 0, 123_456_789, time.FixedZone("", 3600))
	i := saga.At(at)
	require.Equal(t, at.Truncate(time.Microsecond).UTC(), i.Time())
	require.Equal(t, at.Add(time.Hour).Truncate(time.Microsecond).UTC(), i.Add(time.Hour).Time())
}

// The wait before the next attempt doubles from the base to the most, with up to a quarter of jitter, and is never shorter than
// what the destination asked for.
func TestBackoff(t *testing.T) {
	t.Parallel()
	due := func(r saga.Rules, attempt int, wait time.Duration, jitter func(time.Duration) time.Duration) time.Duration {
		r.MaxAttempts = noLimit
		a, step := attemptAt(&r, attempt)
		env := saga.Env{Now: early, Jitter: jitter}
		err := a.Record(env, eventID(0), "A", saga.Do, 5, saga.Result{Class: saga.ClassRetry, RetryAfter: wait})
		require.NoError(t, err)
		require.Equal(t, saga.Ready, step.State)
		return time.Duration(step.Due-early) * time.Microsecond
	}
	rules := saga.Rules{BackoffBase: 2 * time.Second, BackoffMax: 10 * time.Second}
	for attempt, want := range map[int]time.Duration{1: 2, 2: 4, 3: 8, 4: 10, 5: 10, 1000: 10} {
		require.Equal(t, want*time.Second, due(rules, attempt, 0, nil), "attempt %d", attempt)
	}
	require.Equal(t, time.Minute, due(rules, 1, time.Minute, nil), "Retry-After is honoured")
	require.Equal(t, 8*time.Second, due(rules, 3, time.Second, nil), "a shorter Retry-After does not hurry")
	require.Equal(t, 2*time.Second, due(saga.Rules{BackoffBase: 2 * time.Second}, 9, 0, nil), "no most: no doubling")
	require.Zero(t, due(saga.Rules{}, 1, 0, nil))

	rapid.Check(t, func(t *rapid.T) {
		r := saga.Rules{
			BackoffBase: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "base")).Truncate(time.Millisecond),
			BackoffMax:  time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "max")).Truncate(time.Millisecond),
		}
		attempt := rapid.IntRange(1, 100).Draw(t, "attempt")
		base := due(r, attempt, 0, nil)
		if r.BackoffMax > 0 && base > r.BackoffMax {
			t.Fatalf("%s is longer than %s", base, r.BackoffMax)
		}
		share := rapid.Int64Range(0, 100).Draw(t, "percent")
		jittered := due(r, attempt, 0, func(most time.Duration) time.Duration { return most / 100 * time.Duration(share) })
		if jittered < base || jittered > base+base/4 {
			t.Fatalf("%s with jitter became %s", base, jittered)
		}
	})
}

func attemptAt(r *saga.Rules, attempts int) (*saga.Aggregate, *saga.Step) {
	return attempt(saga.Running, saga.Do, r, false, attempts)
}
