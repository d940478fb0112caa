package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ebbline/ebb/sim"
)

type simLedgerCmd struct {
	Effects simEffectsCmd `cmd:"" default:"withargs" help:"What happened in the outside world, in order."`
	Calls   simCallsCmd   `cmd:"" help:"Every request that came in, and how it ended."`
	Summary simSummaryCmd `cmd:"" help:"What stands of each order: money, stock, shipments."`
	Check   simCheckCmd   `cmd:"" help:"Whether anything was done twice, or undone wrongly."`
}

// ledgerFilter selects rows of a ledger.
type ledgerFilter struct {
	simPlace
	Order       string `help:"Only of this order." placeholder:"ID"`
	Destination string `help:"Only of this destination." placeholder:"NAME"`
	Direction   string `help:"Only do, undo or lookup." placeholder:"DIRECTION"`
	Key         string `help:"Only under this Idempotency-Key." placeholder:"KEY"`
	Since       int64  `help:"Only rows with a higher number." placeholder:"N"`
	Limit       int    `help:"At most so many rows." default:"1000"`
}

func (f ledgerFilter) filter() sim.Filter {
	return sim.Filter{Aggregate: f.Order, Destination: f.Destination, Direction: sim.Direction(f.Direction), Key: f.Key, Since: f.Since, Limit: f.Limit}
}

type simEffectsCmd struct{ ledgerFilter }

// Help has examples.
func (simEffectsCmd) Help() string {
	return `Examples:

  ebb sim ledger --order 21
  ebb sim ledger effects --destination billing --json | jq -r .amount`
}

func (c *simEffectsCmd) Run(e *env) error {
	client, err := e.sim(c.simPlace)
	if err != nil {
		return err
	}
	effects, err := client.Effects(e.ctx, c.filter())
	if err != nil {
		return err
	}
	return list(e, effects, func(w io.Writer, effects []sim.Effect) {
		rows := make([][]string, len(effects))
		for i, f := range effects {
			rows[i] = []string{
				strconv.FormatInt(f.Seq, 10), stamp(f.At), f.Aggregate, f.Destination, string(f.Direction), string(f.Kind), f.Thing,
				dash(strings.TrimSpace(f.Amount + " " + f.Currency)),
			}
		}
		table(w, "effects", []string{"SEQ", "AT", "ORDER", "DESTINATION", "DIRECTION", "KIND", "THING", "AMOUNT"}, rows)
	})
}

type simCallsCmd struct{ ledgerFilter }

// Help has examples.
func (simCallsCmd) Help() string {
	return `Examples:

  ebb sim ledger calls --order 21
  ebb sim ledger calls --json | jq 'select(.reply.status == 503) | .key'`
}

func (c *simCallsCmd) Run(e *env) error {
	client, err := e.sim(c.simPlace)
	if err != nil {
		return err
	}
	calls, err := client.Calls(e.ctx, c.filter())
	if err != nil {
		return err
	}
	return list(e, calls, func(w io.Writer, calls []sim.Call) {
		rows := make([][]string, len(calls))
		for i, f := range calls {
			rows[i] = []string{
				strconv.FormatInt(f.Seq, 10), stamp(f.At), dash(f.Aggregate), dash(f.Destination), dash(string(f.Direction)), strconv.Itoa(f.Attempt),
				f.Method + " " + f.Target, replied(f.Reply), dash(f.Key),
			}
		}
		table(w, "calls", []string{"SEQ", "AT", "ORDER", "DESTINATION", "DIRECTION", "ATTEMPT", "REQUEST", "REPLY", "KEY"}, rows)
	})
}

func replied(r *sim.Reply) string {
	if r == nil {
		return "in flight"
	}
	out := "cut"
	if r.Status > 0 {
		out = strconv.Itoa(r.Status)
	}
	if r.Replayed {
		out += " replayed"
	}
	if r.Fault != "" {
		out += " (" + r.Fault + ")"
	}
	return out
}

type simSummaryCmd struct {
	simPlace
	Order string `help:"Only of this order." placeholder:"ID"`
}

// Help has examples.
func (simSummaryCmd) Help() string {
	return `Example:

  ebb sim ledger summary --order 21`
}

func (c *simSummaryCmd) Run(e *env) error {
	client, err := e.sim(c.simPlace)
	if err != nil {
		return err
	}
	all, err := client.Summary(e.ctx, c.Order)
	if err != nil {
		return err
	}
	return list(e, all, func(w io.Writer, all []sim.Summary) {
		rows := make([][]string, len(all))
		for i, s := range all {
			var money []string
			for _, m := range s.Money {
				money = append(money, fmt.Sprintf("%s %s (%s - %s)", m.Net, m.Currency, m.Charged, m.Refunded))
			}
			rows[i] = []string{s.Aggregate, dash(strings.Join(money, ", ")), counted(s.Charges), counted(s.Holds), counted(s.Shipments), strconv.Itoa(s.Notifications)}
		}
		table(w, "orders with effects", []string{"ORDER", "MONEY", "CHARGES", "HOLDS", "SHIPMENTS", "NOTIFICATIONS"}, rows)
	})
}

func counted(c sim.Count) string { return fmt.Sprintf("%d live of %d", c.Live, c.Made) }

type simCheckCmd struct{ simPlace }

// Help has examples.
func (simCheckCmd) Help() string {
	return `Exits with 1 if the ledger has a violation.

Example:

  ebb sim ledger check`
}

func (c *simCheckCmd) Run(e *env) error {
	client, err := e.sim(c.simPlace)
	if err != nil {
		return err
	}
	found, err := client.Check(e.ctx)
	if err != nil {
		return err
	}
	err = list(e, found, func(w io.Writer, found []sim.Violation) {
		for _, v := range found {
			fmt.Fprintln(w, plain(v.String()))
		}
		if len(found) == 0 {
			fmt.Fprintln(w, "no violations")
		}
	})
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("the ledger has %d violations", len(found))
	}
	return err
}
