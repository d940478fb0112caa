// Package peer has the loops that Ebb is measured against. They are written as a careful developer would write them by hand, one
// round trip per commit, and are given what they need to be fast; what they leave out is stated.
//
// # Loops
//
// [Steps] is a worker pool without Kafka: per order the four steps of the shipped destinations, two of them side by side, with the
// intent of each step committed before its call and its result with the audit row after it; a refused order is undone in reverse.
// It has no retries, no recovery after a crash, no ordering, and calls nobody twice.
//
// [Records] is a Kafka consumer with one goroutine per partition: per record one call, then the result in a transaction of its
// own, then the mark of the offset, which the client commits once a second. With one partition it is the plain serial loop. It has
// no idempotency record, no retries and no compensation.
//
// # Counting
//
// What is finished stands in tables with the time of the database, so that a window can be counted afterwards, like Ebb's.
package peer
