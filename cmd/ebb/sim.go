package main

import (
	"context"
	"net/http"

	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/sim"
)

type simCmd struct {
	Serve  simServeCmd  `cmd:"" default:"withargs" help:"Serve the simulated destinations; what ebb sim does by itself."`
	Faults simFaultsCmd `cmd:"" help:"The fault script: what goes wrong, when."`
	Rates  simRatesCmd  `cmd:"" help:"Chances of failures and refusals, latencies, and what a repeated key does."`
	Ledger simLedgerCmd `cmd:"" help:"What the destinations were asked for, and what they did."`
	Load   simLoadCmd   `cmd:"" help:"Send orders at a rate; tell latencies and how the orders ended."`
}

type simServeCmd struct {
	HTTP   string `help:"Address of the simulated destinations." default:"127.0.0.1:8090" name:"http" placeholder:"HOST:PORT"`
	Ledger string `help:"File of the ledgers." default:".ebb/sim.ledger" type:"path"`
	Quiet  bool   `help:"Refuse and fail nothing by chance."`
}

// Help has examples.
func (simServeCmd) Help() string {
	return `Example:

  ebb sim --http 127.0.0.1:8090 --ledger sim.ledger`
}

func (c *simServeCmd) Run(e *env) error {
	s, err := openSim(e, c.Ledger, c.Quiet, true)
	if err != nil {
		return err
	}
	defer s.Close()
	ln, err := lifecycle.Listen(e.ctx, c.HTTP, "--http")
	if err != nil {
		return err
	}
	ops, mux := lifecycle.NewOps(), http.NewServeMux()
	ops.Check("ledger", func(context.Context) error { return s.Err() })
	ops.Routes(mux)
	mux.Handle("/", s.Handler())
	e.log.Info("simulated destinations", "http", "http://"+ln.Addr().String())
	return lifecycle.Serve(e.ctx, ln, mux, grace)
}

func openSim(e *env, ledger string, quiet, sync bool) (*sim.Sim, error) {
	cfg := sim.Config{LedgerPath: ledger, NoSync: !sync, Logger: e.log}
	if quiet {
		cfg.Settings = sim.Quiet()
	}
	return sim.Open(cfg)
}
