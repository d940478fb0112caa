// Package inspect reads the journal for people: what was tried for a saga, what it waits for and why, what a destination has to do,
// and records that could not be read.
//
// # Model
//
//	ebb.sagas + ebb.steps ──▶ journal.SagaView ──┐
//	ebb.calls ───────────────────────────────────┼──▶ Saga: steps with attempts, what they wait for, and the next command
//	registered versions (after, max_attempts) ───┘
//	ebb.dead_letters ──▶ Letter          ebb.destinations + backlog ──▶ Destination
//
// # Invariants
//
//   - It only reads, in statements of its own: nothing here takes the lock of an aggregate.
//   - Bytes stay bytes: a letter's key, headers and value are given as they were read from Kafka.
//
// # Failure behaviour
//
// A view is a snapshot of several statements: a saga that moves meanwhile may show a step before and an attempt after the move. A
// version of a destination that is not registered leaves the reason of a wait general.
package inspect
