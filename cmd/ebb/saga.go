package main

import (
	"fmt"
	"io"
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

	Resolve    sagaResolveCmd    `cmd:"" help:"Say of a step that may have happened whether it did, as you have seen at its destination."`
	Done       sagaDoneCmd       `cmd:"" help:"Settle a step that you have done by hand, outside of Ebb."`
	Waive      sagaWaiveCmd      `cmd:"" help:"Settle a step as needless: what it should have done, or undone, stays as it is."`
	Compensate sagaCompensateCmd `cmd:"" help:"Unwind a saga that runs or is completed, and for a create event all later ones of its order."`
}

type sagaListCmd struct {
	where
	State     string `help:"Only sagas in this state: RUNNING, FAILING, COMPENSATING, COMPLETED or COMPENSATED." enum:",RUNNING,FAILING,COMPENSATING,COMPLETED,COMPENSATED" default:""`
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
	stepMove
}

// Help has examples.
func (sagaRetryCmd) Help() string {
	return `Example:

  ebb saga retry 019347a0-6c5e-7c3a-9d55-0f2f4bd1a001 billing do --reason "the gateway is back"`
}

func (c *sagaRetryCmd) Run(e *env) error {
	return c.make(e, "retry", "goes on", func(s *session, t namedStep, by journal.Action) error {
		return s.store.Retry(e.ctx, t.saga, t.dest, t.dir, by)
	})
}
