package inspect

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

func step(dest, dir, state string, seq int64) journal.StepView {
	return journal.StepView{Destination: dest, Direction: dir, State: state, Seq: seq}
}

func TestWaitsSayWhy(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := step("billing", "do", "READY", 0)
	later.Attempt, later.DueAt, later.Reason = 2, &at, "status 503"
	maybe := step("billing", "do", "RESOLVING", 0)
	maybe.DueAt = &at
	parked := step("billing", "do", "PARKED", 0)
	parked.Reason = "status 401"
	after := &saga.Rules{After: []string{"inventory", "shipping"}}
	for name, tt := range map[string]struct {
		state  string
		steps  []journal.StepView // the first is asked about
		rules  *saga.Rules
		before []ahead
		want   string
	}{
		"not read":      {"RUNNING", []journal.StepView{step("billing", "do", "EXPECTED", 0)}, nil, nil, "its consumer has not read the event yet"},
		"free place":    {"RUNNING", []journal.StepView{step("billing", "do", "READY", 0)}, nil, nil, "for a free place at its consumer"},
		"next attempt":  {"RUNNING", []journal.StepView{later}, nil, nil, "for its next attempt, due 2026-01-02T03:04:05Z: status 503"},
		"answer":        {"RUNNING", []journal.StepView{step("billing", "do", "CALLING", 0)}, nil, nil, "for the destination's answer"},
		"found out":     {"RUNNING", []journal.StepView{maybe}, nil, nil, "it may have happened: sent again under the same key, due 2026-01-02T03:04:05Z"},
		"looked up":     {"RUNNING", []journal.StepView{maybe}, &saga.Rules{Lookup: true}, nil, "it may have happened: the destination is asked whether it did, due 2026-01-02T03:04:05Z"},
		"operator":      {"RUNNING", []journal.StepView{parked}, nil, nil, "for an operator: status 401"},
		"settled":       {"RUNNING", []journal.StepView{step("billing", "do", "SUCCEEDED", 1)}, nil, nil, ""},
		"unknown state": {"RUNNING", []journal.StepView{step("billing", "do", "NEW", 1)}, nil, nil, ""},
		"after": {"RUNNING", []journal.StepView{
			step("billing", "do", "WAITING", 0), step("inventory", "do", "CALLING", 0), step("shipping", "do", "SUCCEEDED", 1), step("fraudCheck", "do", "CALLING", 0),
		}, after, nil, "for inventory (CALLING)"},
		"behind an earlier saga": {"RUNNING", []journal.StepView{step("billing", "do", "WAITING", 0)}, after, []ahead{
			{saga: "s-2", version: 2, state: "RUNNING", open: map[string]string{"crm": "READY"}},
			{saga: "s-1", version: 1, state: "RUNNING", attention: "billing do parked: x", open: map[string]string{"billing": "PARKED"}},
		}, "behind saga s-1 (version 1), which is PARKED here: billing do parked: x"},
		"behind an unwinding": {"RUNNING", []journal.StepView{step("billing", "do", "WAITING", 0)}, nil, []ahead{
			{saga: "s-1", version: 1, state: "COMPENSATING"},
		}, "for the unwinding of saga s-1 (version 1)"},
		"own unwinding": {"FAILING", []journal.StepView{step("billing", "do", "WAITING", 0)}, after, nil, "its saga is being unwound"},
		"turn":          {"RUNNING", []journal.StepView{step("billing", "do", "WAITING", 0)}, nil, nil, "for its turn"},
		"undo": {"COMPENSATING", []journal.StepView{
			step("inventory", "undo", "WAITING", 0), step("inventory", "do", "SUCCEEDED", 1), step("shipping", "do", "SUCCEEDED", 2), step("billing", "do", "SUCCEEDED", 3),
			step("shipping", "undo", "CALLING", 0), step("billing", "undo", "SUCCEEDED", 0),
		}, nil, nil, "until this is undone: shipping (CALLING)"},
		"undo of another saga": {"COMPENSATING", []journal.StepView{
			step("inventory", "undo", "WAITING", 0), step("inventory", "do", "SUCCEEDED", 1),
		}, nil, nil, "for its turn in the unwinding"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := journal.SagaView{State: tt.state, Steps: tt.steps}
			require.Equal(t, tt.want, waits(v, tt.steps[0], tt.rules, tt.before))
		})
	}
}

func TestBytesAreNeverChanged(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]Bytes{
		`null`:                              nil,
		`{"base64":"","utf8":""}`:           {},
		`{"base64":"eA==","utf8":"x"}`:      Bytes("x"),
		`{"base64":"/wA="}`:                 {0xff, 0},
		`{"base64":"AA==","utf8":"\u0000"}`: {0},
	} {
		got, err := json.Marshal(b)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}

func TestHeadersKeepOrderAndNulls(t *testing.T) {
	t.Parallel()
	got, err := decodeHeaders([]byte(`[["YQ==","Yg=="],["YQ==",null],["/w==",""]]`))
	require.NoError(t, err)
	require.Equal(t, []Header{{Bytes("a"), Bytes("b")}, {Bytes("a"), nil}, {Bytes{0xff}, Bytes{}}}, got)
	for _, bad := range []string{"", "{}", `[["*",null]]`, `[[1,2]]`} {
		_, err := decodeHeaders([]byte(bad))
		require.Error(t, err, bad)
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add([]byte(`[["YQ==","Yg=="]]`))
	f.Add([]byte(`[[null,null]]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if list, err := decodeHeaders(text); err == nil {
			_, err := json.Marshal(list)
			require.NoError(t, err)
		}
	})
}

// registered is a catalog in memory.
type registered []*journal.Version

func (r registered) Versions(context.Context) ([]*journal.Version, error) { return r, nil }

func (registered) BacklogOf(_ context.Context, name string) (journal.Backlog, error) {
	return journal.Backlog{Ready: int64(len(name)), Oldest: 90 * time.Second}, nil
}

func (registered) Paused(context.Context) (map[string]journal.Pause, error) {
	return map[string]journal.Pause{"c": {Name: "c", Who: "ada", Reason: "they asked"}}, nil
}

func TestDestinationsHaveTheirNewestVersion(t *testing.T) {
	t.Parallel()
	version := func(name string, n int, removed bool, after ...string) *journal.Version {
		return &journal.Version{Name: name, Version: n, Hash: "h", EventTypes: []string{"E"}, Rules: &saga.Rules{After: after}, Removed: removed}
	}
	got, err := Destinations(t.Context(), registered{version("a", 1, false), version("a", 2, false, "b"), version("bb", 1, false), version("bb", 2, true), version("c", 1, false)})
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, Paused, got[2].State)
	require.Equal(t, "ada: they asked", got[2].Paused)
	require.Equal(t, []string{"b"}, got[0].After)
	require.Equal(t, Active, got[0].State)
	require.Equal(t, 2, got[0].Version)
	require.EqualValues(t, 90, got[0].OldestSeconds)
	require.Equal(t, Removed, got[1].State)
	require.Equal(t, []string{"E"}, got[1].EventTypes, "what it was for")
	require.Len(t, got[1].Versions, 2)
	none, err := Destinations(t.Context(), registered{})
	require.NoError(t, err)
	require.Empty(t, none)
}
