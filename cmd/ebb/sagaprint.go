package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ebbline/ebb/cmd/ebb/internal/inspect"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// printSagas shows sagas with their steps, attempts and waits.
func printSagas(w io.Writer, sagas []inspect.Saga) {
	for i, s := range sagas {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printSagaHead(w, s.SagaView)
		for _, t := range s.Steps {
			printStepLine(w, t.StepView)
			printAttempts(w, s.CreatedAt, t.Attempts)
			if t.Waits != "" {
				fmt.Fprintf(w, "      waits %s\n", plain(t.Waits))
			}
			if t.State == saga.Parked.String() {
				fmt.Fprintf(w, "      may have happened: %t; Idempotency-Key %s\n", t.Maybe, t.Key)
			}
			if t.Next != "" {
				fmt.Fprintf(w, "      next: %s\n", t.Next)
			}
		}
	}
}

func printSagaHead(w io.Writer, s journal.SagaView) {
	fmt.Fprintf(w, "saga %s  %s of order %s, version %d  %s\n", s.ID, s.EventType, plain(s.AggregateID), s.Version, s.State)
	fmt.Fprintf(w, "  begun %s, moved %s\n", stamp(s.CreatedAt), stamp(s.UpdatedAt))
	if s.Attention != "" {
		fmt.Fprintf(w, "  attention: %s\n", plain(s.Attention))
	}
	if s.Reason != "" {
		fmt.Fprintf(w, "  reason: %s\n", plain(s.Reason))
	}
}

func printStepLine(w io.Writer, t journal.StepView) {
	line := fmt.Sprintf("  %-14s %-4s %-10s", t.Destination, t.Direction, t.State)
	if t.Seq > 0 {
		line += fmt.Sprintf("  completed as %d", t.Seq)
	}
	if t.Outcome != "" && !strings.EqualFold(t.Outcome, t.State) {
		line += "  outcome " + plain(t.Outcome)
	}
	if t.Reason != "" {
		line += "  " + plain(t.Reason)
	}
	fmt.Fprintln(w, trimRight(line))
}

// shownAttempts is how many attempts of a step people see: a step that met an outage has very many.
const shownAttempts = 20

func printAttempts(w io.Writer, begun time.Time, attempts []inspect.Attempt) {
	if left := len(attempts) - shownAttempts; left > 0 {
		fmt.Fprintf(w, "      … %d attempts before these; --json has all\n", left)
		attempts = attempts[left:]
	}
	for _, a := range attempts {
		printAttempt(w, begun, a)
	}
}

// printAttempt gives the time since the saga began: the clock time is in the JSON.
func printAttempt(w io.Writer, begun time.Time, a inspect.Attempt) {
	status := "no reply"
	if a.Status > 0 {
		status = fmt.Sprintf("status %d", a.Status)
	}
	line := fmt.Sprintf("      attempt %d  %s  +%s  %s  %s  took %s", a.Attempt, stamp(a.StartedAt), round(a.StartedAt.Sub(begun)), a.Class, status,
		fine(micros(a.Micros)))
	if !a.Sent {
		line += "  nothing sent"
	}
	if a.Fenced {
		line += "  came too late to count"
	}
	if a.Error != "" {
		line += "  " + plain(a.Error)
	}
	fmt.Fprintln(w, line)
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
