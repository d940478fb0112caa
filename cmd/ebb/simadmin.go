package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ebbline/ebb/sim"
)

type simFaultsCmd struct {
	List  simFaultsListCmd  `cmd:"" default:"withargs" help:"List the faults that have not ended."`
	Set   simFaultsSetCmd   `cmd:"" help:"Add a fault, or replace the whole script by a file."`
	Clear simFaultsClearCmd `cmd:"" help:"End one fault, or all."`
}

type simFaultsListCmd struct{ simPlace }

// Help has examples.
func (simFaultsListCmd) Help() string {
	return `Example:

  ebb sim faults list --json | jq -r .id`
}

func (c *simFaultsListCmd) Run(e *env) error {
	client, err := e.sim(c.simPlace)
	if err != nil {
		return err
	}
	faults, err := client.Faults(e.ctx)
	if err != nil {
		return err
	}
	return list(e, faults, printFaults)
}

type simFaultsSetCmd struct {
	simPlace
	File        string        `help:"JSON file {\"faults\": […]} that replaces the script; - for standard input." placeholder:"FILE" xor:"what"`
	Action      string        `help:"What goes wrong: lose, hang, reply, unavailable, stall-body, reset or refuse-connection." placeholder:"ACTION" xor:"what"`
	Destination string        `help:"Only calls to this destination." placeholder:"NAME"`
	Direction   string        `help:"Only calls of this direction: do, undo or lookup." placeholder:"DIRECTION"`
	Order       string        `help:"Only calls for this order." placeholder:"ID"`
	Attempt     int           `help:"Only the n-th call under a key." placeholder:"N"`
	Next        int           `help:"End after so many calls." placeholder:"N"`
	Probability string        `help:"Strike by chance, such as 0.25." placeholder:"DECIMAL"`
	For         time.Duration `help:"End after so long." placeholder:"DURATION"`
	Wait        time.Duration `help:"How long hang and stall-body wait; 0 until the client gives up." placeholder:"DURATION"`
	At          string        `help:"When hang waits: before, during or after." placeholder:"WHEN"`
	Status      int           `help:"Status of reply." placeholder:"STATUS"`
	Header      []string      `help:"Header of reply, as NAME:VALUE." placeholder:"NAME:VALUE" sep:"none"`
	Body        string        `help:"Body of reply." placeholder:"TEXT"`
	RetryAfter  int           `help:"Seconds in the Retry-After of unavailable." placeholder:"N"`
	Mode        string        `help:"How refuse-connection refuses: reset or closed." placeholder:"MODE"`
}

// Help has examples.
func (simFaultsSetCmd) Help() string {
	return `Examples:

  ebb sim faults set --action lose --destination billing --attempt 1
  ebb sim faults set --action reply --destination shipping --status 500 --body '{"error":"down"}' --next 3
  ebb sim faults set --file script.json`
}

func (c *simFaultsSetCmd) Run(e *env) error {
	if c.File == "" && c.Action == "" {
		return &usageError{errors.New("nothing to set: use --action, or --file for a whole script")}
	}
	client, err := e.sim(c.simPlace)
	if err != nil {
		return err
	}
	var set []sim.Fault
	if c.File != "" {
		faults, err := readFaults(c.File)
		if err != nil {
			return &usageError{fmt.Errorf("--file: %w", err)}
		}
		if set, err = client.SetFaults(e.ctx, faults...); err != nil {
			return badSetting(err)
		}
	} else {
		fault, err := c.fault()
		if err != nil {
			return &usageError{err}
		}
		if set, err = client.AddFaults(e.ctx, fault); err != nil {
			return badSetting(err)
		}
	}
	return list(e, set, printFaults)
}

// badSetting makes what the simulator finds wrong with a setting an error of the command line.
func badSetting(err error) error {
	var answered *sim.APIError
	if errors.As(err, &answered) && answered.Status == http.StatusUnprocessableEntity {
		return &usageError{errors.New(answered.Message)}
	}
	return err
}

func readFaults(path string) ([]sim.Fault, error) {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	var script struct {
		Faults []sim.Fault `json:"faults"`
	}
	if err := dec.Decode(&script); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return script.Faults, nil
}

func (c *simFaultsSetCmd) fault() (sim.Fault, error) {
	f := sim.Fault{
		Action: sim.Action(c.Action), Destination: c.Destination, Direction: sim.Direction(c.Direction), Aggregate: c.Order, Attempt: c.Attempt,
		Next: c.Next, For: sim.Duration(c.For), Duration: sim.Duration(c.Wait), At: c.At, Status: c.Status, RetryAfter: c.RetryAfter, Mode: c.Mode,
	}
	if c.Body != "" {
		f.Body = sim.RawBody(c.Body)
	}
	if c.Probability != "" {
		var err error
		if f.Probability, err = sim.ParseRate(c.Probability); err != nil {
			return f, fmt.Errorf("--probability: %w", err)
		}
	}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return f, fmt.Errorf("--header %q: want NAME:VALUE", h)
		}
		if f.Header == nil {
			f.Header = http.Header{}
		}
		f.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return f, nil
}

type simFaultsClearCmd struct {
	simPlace
	ID string `arg:"" help:"Id of the fault; without it all are ended." optional:""`
}

// Help has examples.
func (simFaultsClearCmd) Help() string {
	return `Examples:

  ebb sim faults clear
  ebb sim faults clear fault-3`
}

func (c *simFaultsClearCmd) Run(e *env) error {
	client, err := e.sim(c.simPlace)
	if err != nil {
		return err
	}
	if c.ID == "" {
		err = client.ClearFaults(e.ctx)
	} else {
		err = client.RemoveFault(e.ctx, c.ID)
	}
	if err != nil {
		return err
	}
	left, err := client.Faults(e.ctx)
	if err != nil {
		return err
	}
	return list(e, left, printFaults)
}

func printFaults(w io.Writer, faults []sim.Fault) {
	rows := make([][]string, len(faults))
	for i, f := range faults {
		rows[i] = []string{f.ID, string(f.Action), orAll(f.Destination), orAll(string(f.Direction)), orAll(f.Aggregate), strconv.Itoa(f.Struck), conditions(f)}
	}
	table(w, "faults", []string{"ID", "ACTION", "DESTINATION", "DIRECTION", "ORDER", "STRUCK", "DETAILS"}, rows)
}

func orAll(s string) string {
	if s == "" {
		return "*"
	}
	return s
}

// conditions is what else a fault says.
func conditions(f sim.Fault) string {
	var out []string
	add := func(given bool, name string, value any) {
		if given {
			out = append(out, fmt.Sprintf("%s=%v", name, value))
		}
	}
	add(f.Attempt > 0, "attempt", f.Attempt)
	add(f.Next > 0, "next", f.Next)
	add(f.Probability > 0, "probability", f.Probability)
	add(f.For > 0, "for", time.Duration(f.For))
	add(f.Duration > 0, "wait", time.Duration(f.Duration))
	add(f.At != "", "at", f.At)
	add(f.Status > 0, "status", f.Status)
	add(f.RetryAfter > 0, "retryAfter", f.RetryAfter)
	add(f.Mode != "", "mode", f.Mode)
	return dash(strings.Join(out, " "))
}

// sim makes a client of the simulated destinations that are given, or that run nearby.
func (e *env) sim(p simPlace) (*sim.Client, error) {
	base := p.URL
	if base == "" {
		r, err := p.find()
		if err != nil {
			return nil, err
		}
		if base = r.Sim; base == "" {
			return nil, p.missing("--url", "EBB_SIM_URL")
		}
		if r.ended() {
			return nil, &unreachableError{fmt.Errorf("the simulated destinations do not run%s", r.hint())}
		}
	}
	client := sim.NewClient(base, &http.Client{Timeout: time.Minute})
	if err := client.Healthy(e.ctx); err != nil {
		var answered *sim.APIError
		if errors.As(err, &answered) {
			return nil, err
		}
		return nil, &unreachableError{fmt.Errorf("the simulated destinations at %s do not answer: %w", base, err)}
	}
	return client, nil
}
