// Package kafkarun runs a Kafka broker and a schema registry inside the
// process, for the embedded way to run Ebb, and creates topics on any Kafka.
//
// # Model
//
//	StartBroker    kfake with a data directory; one node, loopback only
//	StartRegistry  srfake behind a gate: compatibility is checked, a change is
//	               on disk before its reply
//	EnsureTopics   creates what is missing, reports what differs
//
// # Invariants
//
//   - What the broker acknowledged is read again after kill -9 of the process,
//     once. A power cut may lose the last records unless Sync is set.
//
//   - A schema id that was ever given out keeps its meaning: records hold ids
//     for as long as they live.
//
//   - One process per data directory or registry file, by a file lock that the
//     system releases with the process.
//
//   - A topic is never changed once it exists: not its partitions, since they
//     place the keys, nor its settings, which are the operator's.
//
//   - A group member that has died loses its partitions, also one that died
//     while it joined, which the broker by itself would keep for ever.
//
// # Failure
//
// A port or a directory in use is a [PortTakenError] or an [InUseError]. A
// registry that cannot write answers every request with 503 until it is
// started again, so that no id is known that the file does not hold; readers
// take that as an outage and wait. A registry file that ends in the middle of
// a line was cut by a crash before the reply: the line is dropped. Any other
// damage is a [CorruptError], and nothing is started on it.
//
// Neither is meant for production: there is no replication and no access
// control, and the broker's data may not survive an upgrade.
package kafkarun
