package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/producer/page"
	"github.com/ebbline/ebb/producer/postgres"
	"github.com/ebbline/ebb/schemas"
)

// pageJournal shows the journal to the order page.
type pageJournal struct{ store *journal.Store }

func (j pageJournal) OrderSagas(ctx context.Context, orderID string) ([]page.Saga, error) {
	stories, err := j.store.StoriesOf(ctx, journal.Key{Type: schemas.AggregateOrder, ID: orderID})
	if err != nil {
		return nil, err
	}
	sagas := make([]page.Saga, len(stories))
	for i, s := range stories {
		sagas[i] = pageSaga(s)
	}
	return sagas, nil
}

func pageSaga(s journal.Story) page.Saga {
	out := page.Saga{
		ID: s.ID, Event: s.EventType, Version: s.Version, State: s.State, Attention: s.Attention, Reason: s.Reason,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, OmittedCalls: s.Omitted,
	}
	for _, t := range s.Steps {
		out.Steps = append(out.Steps, page.Step{
			Destination: t.Destination, Undo: isUndo(t.Direction), State: t.State, Key: t.Key, Maybe: t.Maybe, Attempts: t.Attempt, Seq: t.Seq,
			Wait: s.Waits[t.Key], Outcome: t.Outcome, Reason: t.Reason, UpdatedAt: t.UpdatedAt,
		})
	}
	for _, a := range s.Attempts {
		out.Calls = append(out.Calls, page.Call{
			Destination: a.Destination, Undo: isUndo(a.Direction), Attempt: a.Attempt, Class: a.Class, Status: a.Status, Error: a.Error,
			Sent: a.Sent, Fenced: a.Fenced, StartedAt: a.StartedAt, Duration: a.Duration,
		})
	}
	return out
}

func isUndo(direction string) bool { return direction == saga.Undo.String() }

// addPage adds the page for people to the mux, at /.
func addPage(mux *http.ServeMux, orders *postgres.Store, store *journal.Store, log *slog.Logger) error {
	p, err := page.New(page.Config{Store: orders, CurrencyScale: schemas.CurrencyScale, Journal: pageJournal{store}, Logger: log})
	if err != nil {
		return err
	}
	mux.Handle("/", p)
	return nil
}
