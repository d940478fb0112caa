package cdc

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Names that Ebb uses unless told otherwise.
const (
	DefaultPublication = "ebb_outbox_pub"
	DefaultSlot        = "ebb_outbox"
)

// DefaultTables are the outboxes of Ebb, as schema.table.
func DefaultTables() []string {
	return []string{"orders.outbox", "ebb.outbox", "ebb.outbox_repair"}
}

// Config says what to make. The zero value makes Ebb's own.
type Config struct {
	// Publication is the name of the publication. Empty: DefaultPublication.
	Publication string
	// Slot is the name of the slot: lower-case letters, digits, underscore. Empty: DefaultSlot.
	Slot string
	// Tables are published, each as schema.table. Empty: DefaultTables. All must exist.
	Tables []string
	// NoFailover leaves the slot out of the synchronisation to standbys, on PostgreSQL 17 and later.
	NoFailover bool
	// SlotWait bounds the wait for running transactions when the slot is made. Zero: one minute.
	SlotWait time.Duration
}

func (c Config) withDefaults() Config {
	if c.Publication == "" {
		c.Publication = DefaultPublication
	}
	if c.Slot == "" {
		c.Slot = DefaultSlot
	}
	if len(c.Tables) == 0 {
		c.Tables = DefaultTables()
	}
	if c.SlotWait == 0 {
		c.SlotWait = time.Minute
	}
	return c
}

var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

func (c Config) validate() error {
	var problems []error
	if !slotName.MatchString(c.Slot) {
		problems = append(problems, fmt.Errorf("slot %q may have lower-case letters, digits and underscores only, up to 63", c.Slot))
	}
	if len(c.Publication) > 63 {
		problems = append(problems, fmt.Errorf("publication %q is longer than 63 bytes", c.Publication))
	}
	if c.SlotWait < time.Millisecond {
		problems = append(problems, fmt.Errorf("SlotWait %s is below a millisecond", c.SlotWait))
	}
	for _, table := range c.Tables {
		schema, name, ok := strings.Cut(table, ".")
		if !ok || schema == "" || name == "" || strings.Contains(name, ".") {
			problems = append(problems, fmt.Errorf("table %q is not of the form schema.table", table))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("cdc config: %w", errors.Join(problems...))
	}
	return nil
}
