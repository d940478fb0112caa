package main

import (
	"fmt"
	"io"

	"github.com/ebbline/ebb/journal"
)

// pauseMove is what both moves take.
type pauseMove struct {
	where
	Name   string `arg:"" help:"Name of the destination."`
	Reason string `help:"Why; it is kept with the move." required:"" placeholder:"TEXT"`
}

// pauseChange is a move that was made.
type pauseChange struct {
	Destination string `json:"destination"`
	Action      string `json:"action"`
}

func (c *pauseMove) make(e *env, action, says string, do func(*session, journal.Action) error) error {
	s, err := e.operate(c.where)
	if err != nil {
		return err
	}
	defer s.close()
	if err := do(s, journal.Action{Who: operator(), Reason: c.Reason}); err != nil {
		return fmt.Errorf("%w; see `ebb destination list`", err)
	}
	return one(e, pauseChange{c.Name, action}, func(w io.Writer, m pauseChange) {
		fmt.Fprintf(w, "%s %s\n", m.Destination, says)
	})
}

type destinationPauseCmd struct {
	pauseMove
}

// Help has examples.
func (destinationPauseCmd) Help() string {
	return `Example:

  ebb destination pause billing --reason "the gateway double-books since their release"`
}

func (c *destinationPauseCmd) Run(e *env) error {
	return c.make(e, "pause", "is sent nothing any more; its orders wait", func(s *session, by journal.Action) error {
		return s.store.Pause(e.ctx, c.Name, by)
	})
}

type destinationResumeCmd struct {
	pauseMove
}

// Help has examples.
func (destinationResumeCmd) Help() string {
	return `Example:

  ebb destination resume billing --reason "they have rolled back"`
}

func (c *destinationResumeCmd) Run(e *env) error {
	return c.make(e, "resume", "goes on", func(s *session, by journal.Action) error {
		return s.store.Resume(e.ctx, c.Name, by)
	})
}
