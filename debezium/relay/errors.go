package relay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pglogrepl"
)

// The errors below end Run. None of them goes away by trying again, and for most of them going on would lose events in
// silence.

// SlotMissingError says that the slot does not exist. What was written since it disappeared is not in it.
type SlotMissingError struct{ Slot string }

func (e *SlotMissingError) Error() string {
	return fmt.Sprintf("replication slot %q does not exist: at the first start run ebb connector apply (it makes it); "+
		"if it has been dropped, events since then were not streamed: make it again, then run ebb recover", e.Slot)
}

// SlotLostError says that the server has thrown away WAL that the slot still needed.
type SlotLostError struct {
	Slot   string
	Status string // wal_status
	Reason string // invalidation_reason, where the server gives one
}

func (e *SlotLostError) Error() string {
	reason := e.Status
	if e.Reason != "" {
		reason += ", " + e.Reason
	}
	return fmt.Sprintf("replication slot %q is lost (%s): events in the removed WAL were not streamed; drop it, make it "+
		"again with ebb connector apply, then run ebb recover; see max_slot_wal_keep_size", e.Slot, reason)
}

// SlotForeignError says that the slot is not a pgoutput slot of this database.
type SlotForeignError struct{ Slot, Plugin, Database string }

func (e *SlotForeignError) Error() string {
	return fmt.Sprintf("replication slot %q has plugin %q and database %q: name the slot that was made for this database",
		e.Slot, e.Plugin, e.Database)
}

// SlotAheadError says that the slot has been confirmed beyond what Kafka is known to hold: by another reader, by
// pg_replication_slot_advance, or because it was dropped and made again.
type SlotAheadError struct {
	Slot      string
	Confirmed pglogrepl.LSN // where the slot would go on
	Acked     pglogrepl.LSN // up to where Kafka is known to have everything
}

func (e *SlotAheadError) Error() string {
	return fmt.Sprintf("replication slot %q stands at %s, but Kafka has acknowledged only up to %s: events between may be "+
		"missing; run ebb recover, which compares the outbox with Kafka and then accepts the slot", e.Slot, e.Confirmed, e.Acked)
}

// SystemChangedError says that the server is not the one whose positions are known: restored, failed over or replaced.
// Positions of one are meaningless on the other.
type SystemChangedError struct {
	Slot    string
	Was, Is System
}

func (e *SystemChangedError) Error() string {
	return fmt.Sprintf("slot %q was streamed from %s, this server is %s: it was restored, failed over or replaced; "+
		"run ebb recover, which compares the outbox with Kafka and then accepts the server", e.Slot, e.Was, e.Is)
}

// UnknownSlotError says that the state topic knows other slots but not this one, so this is no first start.
type UnknownSlotError struct {
	Slot, Topic string
	Known       []string
}

func (e *UnknownSlotError) Error() string {
	return fmt.Sprintf("state topic %q holds positions of %s and none of slot %q: check the slot name; if this slot is "+
		"meant to be new, give it a state topic of its own or accept it with ebb recover",
		e.Topic, strings.Join(e.Known, ", "), e.Slot)
}

// PublicationError says that the publication is missing, or is younger than what the slot has to decode.
type PublicationError struct {
	Publication, Slot string
	Stale             bool // it exists now, but did not when the rows were written
}

func (e *PublicationError) Error() string {
	if e.Stale {
		return fmt.Sprintf("publication %q is younger than WAL that slot %q has still to decode: make a new slot with "+
			"ebb connector apply, then run ebb recover for the rows between", e.Publication, e.Slot)
	}
	return fmt.Sprintf("publication %q does not exist: make it, and after it the slot, with ebb connector apply", e.Publication)
}

// SchemaError says that an outbox table does not have what the mapping names.
type SchemaError struct {
	Table, Column string
	Problem       string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("table %s, column %q: %s; change the mapping or the table", e.Table, e.Column, e.Problem)
}

// PoisonError says that one row cannot become a record, now or later. Rows after it wait: skipping it would lose an event.
type PoisonError struct {
	Table string        // empty if Kafka refused the record
	ID    string        // of the event, as far as it could be read
	LSN   pglogrepl.LSN // commit of the row's transaction
	Topic string        // where it was to go, if known
	Err   error
}

func (e *PoisonError) Error() string {
	from := "row"
	if e.Table != "" {
		from = "row of " + e.Table
	}
	return fmt.Sprintf("%s with id %q (topic %q, committed at %s) cannot be published: %v; mend the topic or its limits, "+
		"or skip the event on purpose with ebb recover", from, e.ID, e.Topic, e.LSN, e.Err)
}

// Unwrap gives the reason.
func (e *PoisonError) Unwrap() error { return e.Err }

// terminal marks the errors that end Run.
type terminal interface{ terminal() }

func (*SlotMissingError) terminal()   {}
func (*SlotLostError) terminal()      {}
func (*SlotForeignError) terminal()   {}
func (*SlotAheadError) terminal()     {}
func (*SystemChangedError) terminal() {}
func (*UnknownSlotError) terminal()   {}
func (*PublicationError) terminal()   {}
func (*SchemaError) terminal()        {}
func (*PoisonError) terminal()        {}

func isTerminal(err error) bool {
	var t terminal
	return errors.As(err, &t)
}
