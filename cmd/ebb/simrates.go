package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ebbline/ebb/sim"
)

type simRatesCmd struct {
	simPlace
	Quiet       bool              `help:"Set all chances of failures and refusals to 0 first."`
	Set         []string          `arg:"" help:"Chances of failure to set, as KEY=DECIMAL, such as billing.charge=0.3; * for all." optional:"" name:"key=rate"`
	Refuse      map[string]string `help:"Chances that a destination refuses an order for good, as NAME=DECIMAL." placeholder:"NAME=DECIMAL"`
	Latency     map[string]string `help:"How long a destination takes, as NAME=DURATION or NAME=MIN..MAX." placeholder:"NAME=RANGE"`
	Idempotency map[string]string `help:"What a repeated key does, as NAME=on, off, success_only or a time to live." placeholder:"NAME=MODE"`
}

// Help has examples.
func (simRatesCmd) Help() string {
	return `Examples:

  ebb sim rates
  ebb sim rates billing.charge=0.3 '*=0.05' --latency billing=5ms..20ms
  ebb sim rates --quiet --idempotency shipping=off`
}

func (c *simRatesCmd) Run(e *env) error {
	change, err := c.change()
	if err != nil {
		return &usageError{err}
	}
	client, err := e.sim(c.simPlace)
	if err != nil {
		return err
	}
	var now sim.Settings
	if c.Quiet || len(change.Rates)+len(change.Refusals)+len(change.Latency)+len(change.Idempotency) > 0 {
		now, err = client.ChangeSettings(e.ctx, change)
	} else {
		now, err = client.Settings(e.ctx)
	}
	if err != nil {
		return badSetting(err)
	}
	return one(e, now, printSettings)
}

// change reads the flags; every problem is reported at once.
func (c *simRatesCmd) change() (sim.Settings, error) {
	var problems []error
	out := sim.Settings{Rates: map[string]sim.Rate{}, Refusals: map[string]sim.Rate{}, Latency: map[string]sim.Latency{}, Idempotency: map[string]sim.Idempotency{}}
	if c.Quiet {
		out = sim.Quiet()
		out.Latency, out.Idempotency = map[string]sim.Latency{}, map[string]sim.Idempotency{}
	}
	for _, pair := range c.Set {
		key, text, _ := strings.Cut(pair, "=")
		rate, err := sim.ParseRate(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", plain(pair), err))
		}
		out.Rates[key] = rate
	}
	for key, text := range c.Refuse {
		rate, err := sim.ParseRate(text)
		problems = append(problems, err)
		out.Refusals[key] = rate
	}
	for key, text := range c.Latency {
		latency, err := sim.ParseLatency(text)
		problems = append(problems, err)
		out.Latency[key] = latency
	}
	for key, text := range c.Idempotency {
		var mode sim.Idempotency
		problems = append(problems, mode.UnmarshalText([]byte(text)))
		out.Idempotency[key] = mode
	}
	return out, errors.Join(problems...)
}

func printSettings(w io.Writer, s sim.Settings) {
	var rows [][]string
	for _, key := range slices.Sorted(maps.Keys(s.Rates)) {
		rows = append(rows, []string{key, s.Rates[key].String()})
	}
	table(w, "rates", []string{"FAILURES OF", "CHANCE"}, rows)
	fmt.Fprintln(w)
	rows = nil
	for _, d := range sim.Destinations() {
		rows = append(rows, []string{d, s.Refusals[d].String(), s.Latency[d].String(), s.Idempotency[d].String(), dash(strings.Join(s.Refuse[d], ","))})
	}
	table(w, "destinations", []string{"DESTINATION", "REFUSES", "LATENCY", "IDEMPOTENCY", "REFUSES ORDERS"}, rows)
}
