// Package stream gives tests the stream side of the pipeline: an in-memory Kafka cluster with the topics of the contract, a schema
// registry with its schemas, and records as the outbox router writes them.
//
// # Failure behaviour
//
// The registry can be taken away and brought back (Away, Back), with its answers or without: that is how a test shows that a registry
// that is down delays records and loses none.
package stream
