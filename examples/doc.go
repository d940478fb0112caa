// Package invoicing is an example of a module of your own beside Ebb: a service with its own tables and outbox (invoices), and a
// destination in Go that takes its events (ledger). See README.md; the test in this folder runs it end to end.
package invoicing
