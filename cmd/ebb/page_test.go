package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/cmd/ebb/internal/inspect"
	"github.com/ebbline/ebb/journal"
)

func TestThePageShowsTheCallsOfAllStepsByTheirStart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := inspect.Saga{SagaView: journal.SagaView{ID: "0195", EventType: "OrderCreated", State: "COMPENSATING"}, Steps: []inspect.Step{
		{StepView: journal.StepView{Destination: "billing", Direction: "do", State: "SUCCEEDED", Seq: 7}, Attempts: []inspect.Attempt{{Class: "SUCCEEDED", StartedAt: at.Add(time.Second), Micros: 1500}}},
		{StepView: journal.StepView{Destination: "inventory", Direction: "do", State: "SUCCEEDED"}, Attempts: []inspect.Attempt{{Class: "UNKNOWN", StartedAt: at}}},
		{StepView: journal.StepView{Destination: "billing", Direction: "undo", State: "PARKED"}, Waits: "for an operator", Next: "ebb saga retry"},
	}}
	got := pageSaga(s)
	require.Equal(t, "OrderCreated", got.Event)
	require.Len(t, got.Calls, 2)
	require.Equal(t, "inventory", got.Calls[0].Destination)
	require.Equal(t, 1500*time.Microsecond, got.Calls[1].Duration)
	require.Zero(t, got.OmittedCalls)
	require.Equal(t, []string{"billing", "inventory"}, []string{got.Done()[0].Destination, got.Done()[1].Destination})
	require.Equal(t, "for an operator", got.Undone()[0].Waits)

	for i := range pageCalls + 5 {
		s.Steps[1].Attempts = append(s.Steps[1].Attempts, inspect.Attempt{Class: "RETRY", StartedAt: at.Add(time.Duration(i+2) * time.Second)})
	}
	got = pageSaga(s)
	require.Len(t, got.Calls, pageCalls)
	require.Equal(t, 7, got.OmittedCalls)
	require.Equal(t, "RETRY", got.Calls[0].Class, "the newest are shown")
}
