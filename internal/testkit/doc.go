// Package testkit gives tests real things to run against: a PostgreSQL database of their own, an in-memory Kafka
// cluster, and a way to wait for a condition without sleeping.
//
// # Model
//
// One PostgreSQL server serves a whole test process. It is the one that EBB_TEST_DSN names, or else one that is started
// at the first call of [DB], on a temporary folder, and that ends with the process in whatever way that ends (package
// postgresrun). Each call of DB makes a new empty database, and drops it when the test ends, with its replication slots.
//
// `go run ./internal/testkit/withpg -- go test ./...` starts one server for many test processes.
//
// # What is shared
//
// Roles and replication slot names belong to the server, not to a database: take [Name] for slots, so that parallel
// tests do not meet. wal_level is logical. Making a slot waits for every transaction of the server that has written, those
// of other tests included: leave none open across a wait for another test.
//
// # Rules
//
// Nothing here asserts on elapsed time. [Eventually] fails only after a generous timeout, with the last thing it saw.
package testkit
