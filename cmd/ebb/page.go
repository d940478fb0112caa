package main

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/ebbline/ebb/cmd/ebb/internal/inspect"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/producer/page"
	"github.com/ebbline/ebb/producer/postgres"
	"github.com/ebbline/ebb/schemas"
)

// Bounds of an order's page: an order may have any number of sagas, and a step that met an outage any number of attempts.
const (
	pageSagas = 50
	pageCalls = 200
)

// pageJournal shows the journal to the order page.
type pageJournal struct{ s *session }

func (j pageJournal) OrderSagas(ctx context.Context, orderID string) ([]page.Saga, error) {
	views, err := j.s.store.SagasOf(ctx, journal.Key{Type: schemas.AggregateOrder, ID: orderID})
	if err != nil {
		return nil, err
	}
	found, err := inspect.Sagas(ctx, j.s.pool, j.s.store, views[max(0, len(views)-pageSagas):])
	if err != nil {
		return nil, err
	}
	sagas := make([]page.Saga, len(found))
	for i, s := range found {
		sagas[i] = pageSaga(s)
	}
	return sagas, nil
}

func pageSaga(s inspect.Saga) page.Saga {
	out := page.Saga{
		ID: s.ID, Event: s.EventType, Version: s.Version, State: s.State, Attention: s.Attention, Reason: s.Reason,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	for _, t := range s.Steps {
		undo := t.Direction == saga.Undo.String()
		out.Steps = append(out.Steps, page.Step{
			Destination: t.Destination, Undo: undo, State: t.State, Key: t.Key, Maybe: t.Maybe, Attempts: t.Attempt, Seq: t.Seq,
			Waits: t.Waits, Next: t.Next, Outcome: t.Outcome, Reason: t.Reason,
		})
		for _, a := range t.Attempts {
			out.Calls = append(out.Calls, page.Call{
				Destination: t.Destination, Undo: undo, Attempt: a.Attempt, Class: a.Class, Status: a.Status, Error: a.Error,
				Sent: a.Sent, Fenced: a.Fenced, StartedAt: a.StartedAt, Duration: time.Duration(a.Micros) * time.Microsecond,
			})
		}
	}
	slices.SortStableFunc(out.Calls, func(x, y page.Call) int { return x.StartedAt.Compare(y.StartedAt) })
	out.OmittedCalls = max(0, len(out.Calls)-pageCalls)
	out.Calls = out.Calls[out.OmittedCalls:]
	return out
}

// addPage adds the page for people to the mux, at /.
func addPage(mux *http.ServeMux, orders *postgres.Store, s *session, log *slog.Logger) error {
	p, err := page.New(page.Config{Store: orders, CurrencyScale: schemas.CurrencyScale, Journal: pageJournal{s}, Logger: log})
	if err != nil {
		return err
	}
	mux.Handle("/", p)
	return nil
}
