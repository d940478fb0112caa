// Package cdc makes what a change-data-capture reader of the outboxes needs inside PostgreSQL: the publication and,
// after it, the replication slot. Debezium and the relay use the same two.
//
// # Order
//
// The publication is made first, always. The decoder looks a publication up in the catalogue as of the WAL position it
// decodes, so a slot that is older than its publication fails for ever on PostgreSQL 17 and before, and skips rows
// silently from 18 on. Creating the publication afterwards does not heal such a slot. Setup refuses it.
//
// # Idempotence
//
// Setup may run at every deploy and from several processes at once; a session lock lets one work at a time. What is
// right already is left alone; a publication that publishes more than inserts, not by the partition root, or not all
// tables is put right. Tables that someone else added stay. A slot is made once and never dropped or made again here:
// a slot that is gone is lost events, which is not a thing to repair in silence.
//
// # Failure behaviour
//
// Problems that need an operator are typed: [WALLevelError], [MissingTablesError], [SlotOlderError], [SlotError],
// [SlotWaitError]. Creating a slot waits for every running transaction of the server to end; Config.SlotWait bounds
// that.
package cdc
