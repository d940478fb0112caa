package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"

	"github.com/ebbline/ebb/consumers/endpoint"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// stepMove is what every move of a step takes.
type stepMove struct {
	where
	ID          string `arg:"" help:"Id of the saga."`
	Destination string `arg:"" help:"Destination of the step."`
	Direction   string `arg:"" help:"do or undo." enum:"do,undo" default:"do" optional:""`
	Reason      string `help:"Why; it is kept with the move." required:"" placeholder:"TEXT"`
}

type namedStep struct {
	saga saga.ID
	dest string
	dir  saga.Direction
}

// make finds the step, makes the move and prints it; says is what becomes of the step.
func (c *stepMove) make(e *env, action, says string, do func(*session, namedStep, journal.Action) error) error {
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
	if err := do(s, namedStep{id, c.Destination, dir}, journal.Action{Who: operator(), Reason: c.Reason}); err != nil {
		return fmt.Errorf("%w; see `ebb saga show %s`", err, id)
	}
	return one(e, move{id.String(), c.Destination, c.Direction, action}, func(w io.Writer, m move) {
		fmt.Fprintf(w, "saga %s: %s %s %s\n", m.Saga, m.Destination, m.Direction, says)
	})
}

// move is an operator's move that was made.
type move struct {
	Saga        string `json:"saga"`
	Destination string `json:"destination,omitempty"`
	Direction   string `json:"direction,omitempty"`
	Action      string `json:"action"`
}

// operator is who makes a move.
func operator() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// replyFlags name the answer that an operator has got, or seen.
type replyFlags struct {
	Reply  string `help:"File with the body of the destination's answer, - for standard input: the undo request and later steps are made of it." placeholder:"FILE" type:"existingfile"`
	Status int    `help:"Status of that answer." default:"200"`
}

// maxReply is what a destination may answer.
const maxReply = 1 << 20

// prove reads the answer and renders what undoing takes.
func (f replyFlags) prove(ctx context.Context, s *session, t namedStep) (journal.Proof, error) {
	var reply *journal.Response
	if f.Reply != "" {
		body, err := f.read()
		if err != nil {
			return journal.Proof{}, &usageError{err}
		}
		reply = &journal.Response{Status: f.Status, Body: body}
	}
	step, err := s.store.Unsettled(ctx, t.saga, t.dest, t.dir)
	if err != nil {
		return journal.Proof{}, err
	}
	v, err := s.store.VersionOf(ctx, t.dest, step.SpecVersion)
	if err != nil {
		return journal.Proof{}, err
	}
	if v.Kind == journal.KindGo {
		return provenElsewhere(step, reply), nil
	}
	file, err := spec.Parse(fmt.Sprintf("%s version %d", v.Name, v.Version), v.Source)
	if err != nil {
		return journal.Proof{}, err
	}
	ep, err := endpoint.New(endpoint.Config{Live: file, Versions: s.store})
	if err != nil {
		return journal.Proof{}, err
	}
	defer ep.Close()
	return ep.Prove(ctx, step, reply), nil
}

// provenElsewhere is the proof for a step of a Go program: only its handler could build the undo request.
func provenElsewhere(step journal.Unsettled, reply *journal.Response) journal.Proof {
	out := journal.Proof{Reply: reply, Revert: saga.RevertBroken, Route: step.Route}
	if step.Dir == saga.Undo {
		out.Revert = 0
	}
	return out
}

func (f replyFlags) read() ([]byte, error) {
	in := io.Reader(os.Stdin)
	if f.Reply != "-" {
		file, err := os.Open(f.Reply)
		if err != nil {
			return nil, fmt.Errorf("--reply: %w", err)
		}
		defer file.Close()
		in = file
	}
	body, err := io.ReadAll(io.LimitReader(in, maxReply+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--reply: %w", err)
	case len(body) > maxReply:
		return nil, fmt.Errorf("--reply: longer than %d bytes, which no answer may be", maxReply)
	}
	return body, nil
}

type sagaResolveCmd struct {
	stepMove
	Happened    bool `help:"It happened: it counts as done, and is undone if its saga is unwound." xor:"verdict" required:""`
	NotHappened bool `help:"It did not happen and cannot any more: it is tried again, or given up if its saga is unwound." xor:"verdict" required:""`
	replyFlags
}

// Help has examples.
func (sagaResolveCmd) Help() string {
	return `Look at the destination first, with the step's Idempotency-Key from ` + "`ebb saga show`" + `.

Examples:

  ebb saga resolve 019347a0-6c5e-7c3a-9d55-0f2f4bd1a001 billing --happened --reply charge.json --reason "seen in the gateway's list"
  ebb saga resolve 019347a0-6c5e-7c3a-9d55-0f2f4bd1a001 billing --not-happened --reason "not in the gateway's list of the day"`
}

func (c *sagaResolveCmd) Run(e *env) error {
	if c.NotHappened {
		if c.Reply != "" {
			return &usageError{errors.New("--reply belongs to --happened")}
		}
		return c.make(e, "resolve as not happened", "did not happen", func(s *session, t namedStep, by journal.Action) error {
			return s.store.Disprove(e.ctx, t.saga, t.dest, t.dir, by)
		})
	}
	return c.make(e, "resolve as happened", "happened", func(s *session, t namedStep, by journal.Action) error {
		p, err := c.prove(e.ctx, s, t)
		if err != nil {
			return err
		}
		return s.store.Prove(e.ctx, t.saga, t.dest, t.dir, p, by)
	})
}

type sagaDoneCmd struct {
	stepMove
	Reference string `help:"Where it is on record, such as a ticket or a booking." required:"" placeholder:"TEXT"`
	replyFlags
}

// Help has examples.
func (sagaDoneCmd) Help() string {
	return `Example:

  ebb saga done 019347a0-6c5e-7c3a-9d55-0f2f4bd1a001 billing undo --reference "refund 4711" --reason "the gateway is closed for good"`
}

func (c *sagaDoneCmd) Run(e *env) error {
	return c.make(e, "done", "is done", func(s *session, t namedStep, by journal.Action) error {
		p, err := c.prove(e.ctx, s, t)
		if err != nil {
			return err
		}
		return s.store.Done(e.ctx, t.saga, t.dest, t.dir, c.Reference, p, by)
	})
}

type sagaWaiveCmd struct {
	stepMove
}

// Help has examples.
func (sagaWaiveCmd) Help() string {
	return `Example:

  ebb saga waive 019347a0-6c5e-7c3a-9d55-0f2f4bd1a001 shipping undo --reason "the parcel has arrived and is paid for"`
}

func (c *sagaWaiveCmd) Run(e *env) error {
	return c.make(e, "waive", "is waived", func(s *session, t namedStep, by journal.Action) error {
		return s.store.Waive(e.ctx, t.saga, t.dest, t.dir, by)
	})
}

type sagaCompensateCmd struct {
	where
	ID     string `arg:"" help:"Id of the saga."`
	Reason string `help:"Why; it is kept with the move." required:"" placeholder:"TEXT"`
}

// Help has examples.
func (sagaCompensateCmd) Help() string {
	return `Example:

  ebb saga compensate 019347a0-6c5e-7c3a-9d55-0f2f4bd1a001 --reason "the warehouse has burnt down"`
}

func (c *sagaCompensateCmd) Run(e *env) error {
	id, err := saga.ParseID(c.ID)
	if err != nil {
		return &usageError{fmt.Errorf("saga id: %w; see `ebb saga list`", err)}
	}
	s, err := e.operate(c.where)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.store.Unwind(e.ctx, id, journal.Action{Who: operator(), Reason: c.Reason}); err != nil {
		return fmt.Errorf("%w; see `ebb saga show %s`", err, id)
	}
	return one(e, move{Saga: id.String(), Action: "compensate"}, func(w io.Writer, m move) {
		fmt.Fprintf(w, "saga %s is unwound\n", m.Saga)
	})
}
