// Package outcome lets orders learn how their sagas go on. It reads the saga
// topic and applies what it finds to the order store.
//
// # Model
//
//	poll ▶ decode each record ▶ one transaction for all of them ▶ commit offsets
//
// SagaCompleted, SagaCompensated, SagaParked and SagaResumed become outcomes;
// records of other event types and tombstones are skipped and counted.
//
// # Invariants
//
//   - An offset is committed only after its record is in the database, in the
//     dead letters, or known to mean nothing here (G2). A crash in between
//     delivers the record again, and the store ignores revisions it has seen
//     (G11).
//   - Without a committed offset, and when the committed one is gone, reading
//     begins at the start of the topic: repeating is harmless, skipping is not.
//   - Records of one partition are applied in their order.
//
// # Failure behaviour
//
//	what happens                          what follows
//	database or registry unavailable      wait and try again; nothing is skipped
//	schema id that the registry lacks     a few tries, then a dead letter
//	record that cannot be decoded         dead letter; the partition goes on
//	outcome that can never be stored      found by halving the batch, dead letter
//	dead letters cannot be written        wait and try again
//	offset commit fails                   logged; a later commit covers it
//	Kafka refuses for good                Run returns the error
//
// An error that is not known to be the record's fault counts as an outage: a
// missing table or a lost grant must not turn the topic into dead letters.
package outcome
