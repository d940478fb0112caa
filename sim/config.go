package sim

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config configures [Open].
type Config struct {
	// LedgerPath is the file that holds both ledgers. It is created with its
	// folder when missing. Required.
	LedgerPath string
	// NoSync turns the fsync before each reply with an effect off. The file
	// then survives the death of the process but not the loss of power.
	NoSync bool
	// Settings changes the defaults of [DefaultSettings]; what it does not name
	// keeps its default.
	Settings Settings
	// Faults is the first fault script. Default: none.
	Faults []Fault
	// Seed makes another sequence of random failures, refusals and latencies.
	// Zero means a fixed seed that refuses several of the orders 1 to 20.
	Seed uint64
	// AllowReset lets POST /sim/reset empty the ledgers. For tests.
	AllowReset bool
	// Logger receives what an operator should know. Default: discard.
	Logger *slog.Logger
	// Now is the clock of timestamps and of the idempotency time to live.
	// Default: time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Seed == 0 {
		c.Seed = defaultSeed
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	if c.LedgerPath == "" {
		problems = append(problems, errors.New("ledger path is empty; name a file that only this simulator writes"))
	}
	problems = append(problems, c.Settings.validate())
	for i, f := range c.Faults {
		if err := f.validate(); err != nil {
			problems = append(problems, fmt.Errorf("fault %d: %w", i+1, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("sim: invalid configuration: %w", err)
	}
	return nil
}
