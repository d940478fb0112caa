// Package journal is the truth about what was done: the PostgreSQL store that runs the step protocol of package saga.
//
// # Model
//
// A transition of an aggregate is one transaction of three parts, two or three round trips in all:
//
//	lock    BEGIN, advisory locks of the aggregates in the order of their hash, then (in later statements, which see what the
//	        previous holder committed) their sagas, steps, tombstones and the database's time
//	decide  the pure transitions of package saga, in memory
//	write   the rows that changed, calls, requests, events, outbox rows of what was emitted, reader offsets; COMMIT
//
// Every function takes a slice: transitions of many aggregates share one transaction. [Group] collects what single callers bring,
// of a Record at most one per step, and halves a batch that fails until the bad member is alone.
//
// # Who moves what
//
//	Ingest   a destination's consumer: record read        → saga, own step WAITING or READY, offset (G2)
//	Claim    a destination's consumer: READY, RESOLVING   → CALLING with its stored request (G3, G4)
//	Record   a destination's consumer: how it ended       → end state or the next attempt, call, undo request (G5, G6);
//	         RecordOnward claims what that lets go on, in the same transaction
//	Release  a destination's consumer at shutdown         → READY again, uncharged (G10)
//	Expire   a destination's consumer: lease ran out      → may have happened (G3)
//	Cancel   the compensator: a cancel event              → tombstone, scope FAILING
//	Begin    the compensator: CompensationRequested       → COMPENSATING
//	Sweep    the compensator: time passing                → late messages, deadlines
//	Retry, Prove, Done, Disprove, Waive, Unwind: operators → a step that is stuck goes on or is settled; a saga is unwound
//
// # Invariants
//
//   - Nothing waits for anything but the database while it holds an aggregate's lock: no HTTP, no Kafka, no registry.
//   - What is published goes through ebb.outbox in the transaction that decided it (G1).
//   - All times are the database's.
//   - The database refuses nothing that has happened: a success that cannot be stored as it is gets a minimal record.
//
// # Failure behaviour
//
// A failed transaction leaves no trace; the caller tries again. A crash between the commit and the caller's knowing is harmless:
// every function may be repeated with the same arguments.
package journal
