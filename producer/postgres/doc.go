// Package postgres keeps orders in PostgreSQL and writes their events to the
// outbox in the transaction of every change (G1).
//
// # Model
//
// The schema "orders" holds three tables: orders, the outbox (package outbox)
// and request_keys, the first answer to every Idempotency-Key. Migrate makes
// them; a Store works on them.
//
//	call            transaction
//	Create          claim key · insert order · insert OrderCreated · store answer
//	UpdateStatus    claim key · lock order · update · insert OrderStatusUpdated · store answer
//	Cancel          claim key · lock order · update · insert OrderCancelled · store answer
//	SoftDelete      lock order · update
//	ApplyOutcomes   lock orders in the order of their ids · update
//
// # Invariants
//
//   - Every change of a status is decided while the order's row is locked
//     (SELECT … FOR UPDATE), by the machine of package order. Two changes of one
//     order never interleave, and an event never carries a status that was not
//     the order's.
//   - A row of the outbox exists exactly when its change does, and the id of the
//     create event is in the order from its first moment.
//   - A repeated Idempotency-Key gives the first answer byte for byte and changes
//     nothing. A second call that comes while the first still runs waits for it
//     at the unique key, and takes its place if it rolls back.
//   - Applying outcomes again changes nothing: the order keeps the revision.
//
// # Failure behaviour
//
// What the client did wrong comes back as an error of package order. What the
// database cannot do now is an *order.UnavailableError; its Maybe is true when
// the connection was lost during the commit, so that nobody knows whether it
// happened. A repetition with the same key finds out.
//
// An Encoder that has to ask a registry would hold the transaction open
// meanwhile: warm it before the store is used.
//
// # Failpoints
//
// producer.create, producer.status, producer.cancel, producer.delete and
// producer.outcome, each followed by .before_commit or .after_commit.
package postgres
