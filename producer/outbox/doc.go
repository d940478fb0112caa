// Package outbox writes events into a PostgreSQL table in the transaction that
// changes the state they speak of, so that both commit or neither does (G1).
// It is a leaf: a service of any kind can use it on a table of its own.
//
// # Model
//
//	tx, err := pool.Begin(ctx)
//	…                                     // the state change
//	ids, err := outbox.Write(ctx, tx, outbox.Event{
//		AggregateType: "order", AggregateID: "42",
//		Type: "OrderCreated", Payload: body, Version: 1, SchemaVersion: 1,
//	})
//	err = tx.Commit(ctx)
//
// A change-data-capture reader (Debezium's EventRouter or Ebb's relay) turns
// every committed row into one Kafka record:
//
//	column          on the wire
//	id              header id, 36 characters
//	aggregatetype   topic outbox.event.<aggregatetype>
//	aggregateid     record key
//	type            header eventType
//	payload         record value, byte for byte; NULL is a tombstone
//	version         header aggregateVersion, decimal
//	schema_version  header schemaVersion, decimal
//	traceparent     header traceparent
//	created_at      not sent
//
// # Invariants
//
//   - Write takes a pgx.Tx. A pool or a connection does not compile: an event
//     outside the transaction of its state change is the fault this package
//     exists to prevent.
//   - All events of one call are one INSERT, in the order given, never COPY:
//     rows of one COPY share a WAL position, and readers lose some of them at a
//     restart.
//   - Events are checked before the database is touched, and the table's CHECKs
//     refuse the same rows from any other writer: one malformed row would block
//     the stream behind it.
//   - Rows are never updated. An updated row is dropped by the reader or, when
//     its id changes, published twice. A trigger refuses UPDATE.
//
// # The table
//
// DDL makes it, partitioned by UTC day over the time inside the UUIDv7 id, so
// that the primary key is the id alone and old days are dropped, not deleted.
// Ids are made from the database's clock, so a writer with a wrong clock cannot
// put a row into a wrong day. A default partition takes what has no day yet.
// <schema>.<table>_make_partitions(days) makes the days from today to today plus
// days; call it at least once a week (Table.MakePartitions).
//
// # Failure behaviour
//
// A malformed event gives an *InvalidError that names every fault and leaves the
// transaction usable. A duplicate id gives ErrDuplicate. That and any other
// database error aborts the transaction: roll it back.
package outbox
