package main

import (
	"fmt"
	"io"
	"os/user"
	"strconv"

	"github.com/ebbline/ebb/cmd/ebb/internal/inspect"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

type sagaCmd struct {
	List  sagaListCmd  `cmd:"" help:"List sagas, newest first."`
	Show  sagaShowCmd  `cmd:"" help:"Show one saga, or those of an order: steps, attempts, what they wait for and why."`
	Retry sagaRetryCmd `cmd:"" help:"Let a parked step go on, under the same key."`
}

type sagaListCmd struct {
	where
	State     string `help:"Only sagas in this state: ${enum}." enum:",RUNNING,FAILING,COMPENSATING,COMPLETED,COMPENSATED" default:""`
	Attention bool   `help:"Only sagas that wait for an operator."`
	After     string `help:"Id of the last saga of the page before." placeholder:"ID"`
	Limit     int    `help:"Page size, 1 to 1000." default:"50"`
}

// Help has examples.
func (sagaListCmd) Help() string {
	return `Examples:

  ebb saga list --attention
  ebb saga list --state COMPENSATING --json | jq -r .id`
}

func (c *sagaListCmd) Run(e *env) error {
	if c.After != "" {
		if _, err := saga.ParseID(c.After); err != nil {
			return &usageError{fmt.Errorf("--after: %w; it is the first column of the page before", err)}
		}
	}
	r, err := e.read(c.where)
	if err != nil {
		return err
	}
	defer r.close()
	sagas, err := r.store.List(e.ctx, journal.SagaFilter{State: c.State, Attention: c.Attention, After: c.After, Limit: c.Limit})
	if err != nil {
		return err
	}
	return list(e, sagas, func(w io.Writer, sagas []journal.SagaView) {
		rows := make([][]string, len(sagas))
		for i, s := range sagas {
			rows[i] = []string{s.ID, s.EventType, s.AggregateID, strconv.FormatInt(s.Version, 10), s.State, progress(s.Steps), stamp(s.CreatedAt), dash(s.Attention)}
		}
		table(w, "sagas", []string{"ID", "EVENT", "ORDER", "VERSION", "STATE", "STEPS", "CREATED", "ATTENTION"}, rows)
		if len(sagas) == c.Limit {
			fmt.Fprintf(w, "more: --after %s\n", sagas[len(sagas)-1].ID)
		}
	})
}

// progress is how many steps are settled.
func progress(steps []journal.StepView) string {
	settled := 0
	for _, t := range steps {
		if state, err := saga.ParseStepState(t.State); err == nil && state.Settled() {
			settled++
		}
	}
	return fmt.Sprintf("%d/%d", settled, len(steps))
}

type sagaShowCmd struct {
	where
	ID string `arg:"" help:"Id of a saga, or of an order."`
}

// Help has examples.
func (sagaShowCmd) Help() string {
	return `Examples:

  ebb saga show 21
  ebb saga show 019347a0-6c5e-7c3a-9d55-0f2f4bd1a001
  ebb saga show 21 --json | jq '.steps[] | {destination, state, waits}'`
}

func (c *sagaShowCmd) Run(e *env) error {
	r, err := e.read(c.where)
	if err != nil {
		return err
	}
	defer r.close()
	var views []journal.SagaView
	if id, parseErr := saga.ParseID(c.ID); parseErr == nil {
		var v journal.SagaView
		v, err = r.store.SagaOf(e.ctx, id)
		views = append(views, v)
	} else {
		views, err = r.store.SagasOf(e.ctx, journal.Key{Type: schemas.AggregateOrder, ID: c.ID})
		if err == nil && len(views) == 0 {
			err = fmt.Errorf("%w of order %s; see `ebb saga list`", journal.ErrNoSaga, plain(c.ID))
		}
	}
	if err != nil {
		return err
	}
	sagas, err := inspect.Sagas(e.ctx, r.pool, r.store, views)
	if err != nil {
		return err
	}
	return list(e, sagas, printSagas)
}

type sagaRetryCmd struct {
	where
	ID          string `arg:"" help:"Id of the saga."`
	Destination string `arg:"" help:"Destination of the parked step."`
	Direction   string `arg:"" help:"do or undo." enum:"do,undo" default:"do" optional:""`
	Reason      string `help:"Why; it is kept with the move." required:"" placeholder:"TEXT"`
}

// Help has examples.
func (sagaRetryCmd) Help() string {
	return `Example:

  ebb saga retry 019347a0-6c5e-7c3a-9d55-0f2f4bd1a001 billing do --reason "the gateway is back"`
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
	s, err := e.operate(c.where)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.store.Retry(e.ctx, id, c.Destination, dir, journal.Action{Who: operator(), Reason: c.Reason}); err != nil {
		return fmt.Errorf("%w; see `ebb saga show %s`", err, id)
	}
	done := move{id.String(), c.Destination, c.Direction, "retry"}
	return one(e, done, func(w io.Writer, m move) {
		fmt.Fprintf(w, "saga %s: %s %s goes on\n", m.Saga, m.Destination, m.Direction)
	})
}

// move is an operator's move that was made.
type move struct {
	Saga        string `json:"saga"`
	Destination string `json:"destination"`
	Direction   string `json:"direction"`
	Action      string `json:"action"`
}

// operator is who makes a move.
func operator() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}
