// Package compensator begins the unwinding of sagas: it reads what was refused and what was cancelled, and looks by itself for what a
// message has not reached.
//
// # Model
//
//	outbox.event.compensation  CompensationRequested ─▶ FAILING → COMPENSATING, its undo steps are released one by one
//	outbox.event.order         a cancel event        ─▶ tombstone; every saga of the order below its version FAILING, fenced
//	the sweeper, every second  FAILING for too long, deadlines passed ─▶ the same transitions
//
// The undo calls are made by the destinations' own consumers: they have the credentials, limits and breaker. In what order they are
// released is decided by package saga (G7).
//
// # Invariants
//
//   - No saga depends on a message: a lost, late or repeated one changes when it is unwound, never whether or how often (G9, G11).
//   - What is FAILING sends nothing forward any more, whether this process runs or not: the fence is part of the transaction that
//     made it FAILING.
//
// # Failure behaviour
//
// Any number of compensators may run; each transition is made once, under its aggregate's lock. While none runs, sagas wait FAILING.
package compensator
