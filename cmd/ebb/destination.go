package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ebbline/ebb/cmd/ebb/internal/inspect"
)

type destinationCmd struct {
	List destinationListCmd `cmd:"" help:"List destinations with what they have to do."`
	New  destinationNewCmd  `cmd:"" help:"Write the file of a new destination."`

	Pause  destinationPauseCmd  `cmd:"" help:"Send a destination nothing, from any process, until it is resumed. Calls that are out end as they do."`
	Resume destinationResumeCmd `cmd:"" help:"Let a paused destination go on."`
}

type destinationListCmd struct {
	where
}

// Help has examples.
func (destinationListCmd) Help() string {
	return `Examples:

  ebb destination list
  ebb destination list --json | jq 'select(.parked > 0) | .name'`
}

func (c *destinationListCmd) Run(e *env) error {
	r, err := e.read(c.where)
	if err != nil {
		return err
	}
	defer r.close()
	all, err := inspect.Destinations(e.ctx, r.store)
	if err != nil {
		return err
	}
	return list(e, all, func(w io.Writer, all []inspect.Destination) {
		rows := make([][]string, len(all))
		for i, d := range all {
			oldest := "-"
			if d.OldestSeconds > 0 {
				oldest = (time.Duration(d.OldestSeconds) * time.Second).String()
			}
			rows[i] = []string{
				d.Name, strconv.Itoa(d.Version), d.State, strings.Join(d.EventTypes, ","), dash(strings.Join(d.After, ",")),
				strconv.FormatInt(d.Ready, 10), strconv.FormatInt(d.Calling, 10), strconv.FormatInt(d.Parked, 10), oldest,
			}
		}
		table(w, "destinations; register some with `ebb config apply`",
			[]string{"NAME", "VERSION", "STATE", "ON", "AFTER", "READY", "CALLING", "PARKED", "OLDEST"}, rows)
		for _, d := range all {
			if d.Paused != "" {
				fmt.Fprintf(w, "%s is paused by %s; `ebb destination resume %s --reason TEXT` lets it go on\n", d.Name, d.Paused, d.Name)
			}
		}
	})
}
