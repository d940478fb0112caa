// Package relay streams outbox rows from PostgreSQL's write-ahead log into Kafka, in place of Debezium's connector and
// its EventRouter, and byte for byte like them: topic, key, value, headers and partition of every record are the same.
// Only the record's timestamp is the relay's own.
//
// # Model
//
//	PostgreSQL ──slot, pgoutput, binary──▶ reader ──records in WAL order──▶ Kafka client ──▶ topics
//	     ▲                                   │ transactions                    │ acknowledgements
//	     │                                   ▼                                 ▼
//	     └─────── confirm ◀── state topic ◀────────────── tracker ◀────────────┘
//
// The reader decodes, routes and hands over; it waits only when the records on their way exceed a bound in bytes. The
// tracker knows the end of the WAL up to which every record is acknowledged. A second goroutine writes that position to
// the state topic and, when Kafka has it, confirms it to PostgreSQL. It also answers the server's keepalives, and never
// waits for Kafka, so that a blocked Kafka does not cost the connection.
//
// The Kafka side (engine) outlives connections to PostgreSQL. After a restart of the server the stream goes on behind the
// last transaction that was read, and nothing is sent twice.
//
//	connecting ─admitted─▶ streaming ─connection lost, slot in use─▶ waiting ─▶ connecting
//	                          │ ctx ends                            │ refused
//	                          ▼                                     ▼
//	                       draining ─▶ returned nil              returned an error
//
// # Invariants
//
//   - confirmed position of the slot ≤ position in the state topic ≤ end of what Kafka has acknowledged, contiguously.
//     The left one moves only after the middle one, the middle one only after the right one.
//   - Records of one partition are in WAL order: transactions in commit order, rows in statement order. Copies after a
//     crash repeat a whole suffix in the same order, with the same ids and bytes.
//   - A position of a keepalive counts only between transactions, and behind everything read before it. So a slot does
//     not hold the WAL of tables that are not published.
//   - No row is skipped. What cannot become a record, now or later, ends Run with its id and position.
//
// # What is refused
//
// Before each stream the slot and the server are compared with the state topic, which lives in Kafka so that a restored
// database does not take it back with it. PostgreSQL itself would fast-forward in silence.
//
//	SlotMissingError, SlotLostError   the slot is gone, or the WAL it needs is
//	SlotForeignError                  another plugin or database
//	SlotAheadError                    the slot was confirmed beyond what Kafka is known to have
//	SystemChangedError                another system identifier, timeline or database
//	UnknownSlotError                  the state topic knows other slots but not this one
//	PublicationError                  missing, or younger than rows still to be decoded
//	SchemaError, PoisonError          a table or a row that the mapping cannot publish
//
// A first start, with an empty state topic, takes the slot as it is. [Accept] takes it again after a comparison of the
// outbox with Kafka. Everything else (lost connections, restarts of either side, a slot in use, a topic that does not
// exist yet) is retried for ever, and shown by [Relay.Healthy].
//
// # Differences from Debezium
//
// Payloads must be bytea; `envelope` placement, the timestamp column, JSON expansion and OpenTelemetry spans are not
// offered, and numeric, floating-point and array columns have no header text. An update, a delete or a truncate
// publishes nothing, also where a publication sends it. Heartbeat records are not needed and not written.
//
// # Failpoints
//
// relay.produced, relay.acked, relay.before_store, relay.stored, relay.before_confirm (package failpoint).
package relay
