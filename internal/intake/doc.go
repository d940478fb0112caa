// Package intake reads topics in a consumer group and hands polls of records to somebody who makes them durable, with the
// journal's own offsets deciding where reading begins.
//
// # Model
//
//	assigned ─▶ start = lower of (journal's offset, group's offset), the one that exists, else the reader's first offset
//	poll ─▶ Take (durable, with the offset behind it, in one transaction) ─▶ mark for the group's commit ─▶ next poll
//
// What a record says beside its value is read by an Envelope, which names the headers of outboxes that are not Ebb's.
//
// # Invariants
//
//   - G2: a record is marked for the group's commit only after Take has returned nil.
//   - Polling only dispatches: the rebalance that is held up by a poll waits for one transaction, never for a call.
//   - A group's offset that was reset, deleted or mistyped costs nothing and skips nothing: reading again is harmless, and the
//     journal's offset is there (G11).
//
// # Failure behaviour
//
// Take is called again with the same records until it succeeds or the reader is stopped, unless it says which records alone cannot be
// taken in yet: then their partitions are held, and the others go on. A topic that was made again under its
// name, also while it is read, and a place beyond the topic's end, end Run with an error that names the way out: going on would skip
// or repeat events. A record whose key or headers are not as they should be is a fault with a text, never an error: it is put aside as
// it came. Records that the topic lost before they were read are reported as an error, and reading goes on behind them.
package intake
