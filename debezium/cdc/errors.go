package cdc

import (
	"fmt"
	"strings"
	"time"
)

// WALLevelError says that the server does not write what logical decoding needs.
type WALLevelError struct{ Level string }

func (e *WALLevelError) Error() string {
	return fmt.Sprintf("wal_level is %q: set wal_level=logical in postgresql.conf and restart the server", e.Level)
}

// MissingTablesError names tables that are to be published and do not exist.
type MissingTablesError struct{ Tables []string }

func (e *MissingTablesError) Error() string {
	return fmt.Sprintf("tables to publish do not exist: %s (run ebb migrate first)", strings.Join(e.Tables, ", "))
}

// SlotOlderError says that a slot exists although its publication did not: it cannot decode what was written before the
// publication was made.
type SlotOlderError struct{ Slot, Publication string }

func (e *SlotOlderError) Error() string {
	return fmt.Sprintf("slot %q is older than publication %q, which did not exist: rows between them cannot be decoded; "+
		"drop the slot (SELECT pg_drop_replication_slot('%s')), run this again, and reconcile the outbox",
		e.Slot, e.Publication, e.Slot)
}

// SlotError says that a slot of this name exists and cannot be used.
type SlotError struct{ Slot, Reason string }

func (e *SlotError) Error() string {
	return fmt.Sprintf("slot %q cannot be used: %s", e.Slot, e.Reason)
}

// SlotWaitError says that the slot could not be made because transactions kept running.
type SlotWaitError struct {
	Slot    string
	Waited  time.Duration
	Running []string // process id and age of the oldest ones
}

func (e *SlotWaitError) Error() string {
	return fmt.Sprintf("slot %q could not be made in %s: it waits for all running transactions to end; oldest: %s",
		e.Slot, e.Waited, strings.Join(e.Running, ", "))
}
