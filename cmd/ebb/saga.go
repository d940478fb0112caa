package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/user"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

type sagaCmd struct {
	List  sagaListCmd  `cmd:"" help:"List sagas, newest first."`
	Show  sagaShowCmd  `cmd:"" help:"Show one saga, or those of an order."`
	Retry sagaRetryCmd `cmd:"" help:"Let a parked step go on, under the same key."`
}

type sagaListCmd struct {
	where
	State     string `help:"Only sagas in this state." enum:",RUNNING,FAILING,COMPENSATING,COMPLETED,COMPENSATED" default:""`
	Attention bool   `help:"Only sagas that wait for an operator."`
	After     string `help:"Id of the last saga of the page before."`
	Limit     int    `help:"Page size." default:"50"`
	JSON      bool   `help:"Print JSON." name:"json"`
}

func (c *sagaListCmd) Run(e *env) error {
	s, err := e.journal(c.where)
	if err != nil {
		return err
	}
	defer s.close()
	list, err := s.store.List(e.ctx, journal.SagaFilter{State: c.State, Attention: c.Attention, After: c.After, Limit: c.Limit})
	if err != nil {
		return err
	}
	return printSagas(e.stdout, list, c.JSON)
}

type sagaShowCmd struct {
	where
	ID   string `arg:"" help:"Id of a saga, or of an order."`
	JSON bool   `help:"Print JSON." name:"json"`
}

func (c *sagaShowCmd) Run(e *env) error {
	s, err := e.journal(c.where)
	if err != nil {
		return err
	}
	defer s.close()
	var list []journal.SagaView
	if id, parseErr := saga.ParseID(c.ID); parseErr == nil {
		var v journal.SagaView
		v, err = s.store.SagaOf(e.ctx, id)
		list = append(list, v)
	} else {
		list, err = s.store.SagasOf(e.ctx, journal.Key{Type: schemas.AggregateOrder, ID: c.ID})
		if err == nil && len(list) == 0 {
			err = fmt.Errorf("%w of order %s; see `ebb saga list`", journal.ErrNoSaga, c.ID)
		}
	}
	if err != nil {
		return err
	}
	return printSagas(e.stdout, list, c.JSON)
}

type sagaRetryCmd struct {
	where
	ID          string `arg:"" help:"Id of the saga."`
	Destination string `arg:"" help:"Destination of the parked step."`
	Direction   string `arg:"" help:"do or undo." enum:"do,undo" default:"do" optional:""`
	Reason      string `help:"Why; it is kept with the move." required:""`
}

func (c *sagaRetryCmd) Run(e *env) error {
	id, err := saga.ParseID(c.ID)
	if err != nil {
		return &usageError{fmt.Errorf("saga id: %w; see `ebb saga list`", err)}
	}
	dir, err := saga.ParseDirection(c.Direction)
	if err != nil {
		return &usageError{err}
	}
	s, err := e.journal(c.where)
	if err != nil {
		return err
	}
	defer s.close()
	who := "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if err := s.store.Retry(e.ctx, id, c.Destination, dir, journal.Action{Who: who, Reason: c.Reason}); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "saga %s: %s %s goes on\n", id, c.Destination, dir)
	return nil
}

// journal opens the journal for a short command.
func (e *env) journal(w where) (*session, error) {
	if err := w.fill(false, true); err != nil {
		return nil, err
	}
	return e.open(e.ctx, w, 3)
}

func printSagas(w io.Writer, list []journal.SagaView, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(list)
	}
	for _, s := range list {
		fmt.Fprintf(w, "%s  %s %s v%d  %s  %s\n", s.ID, s.EventType, s.AggregateID, s.Version, s.State, s.Attention)
		for _, t := range s.Steps {
			fmt.Fprintf(w, "    %-14s %-4s %-10s attempts %d  %s\n", t.Destination, t.Direction, t.State, t.Attempt, t.Reason)
			if t.State == saga.Parked.String() {
				fmt.Fprintf(w, "    %-14s %-4s may have happened: %t; Idempotency-Key %s\n", "", "", t.Maybe, t.Key)
			}
		}
	}
	return nil
}
