// Package relay streams outbox rows from PostgreSQL's WAL into Kafka, in place of Debezium and byte for byte like it.
package relay
