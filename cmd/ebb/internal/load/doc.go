// Package load sends orders at a rate and tells how they were taken and how they ended.
//
// # Model
//
//	schedule ── due ──▶ workers ── create (and cancel) ──▶ accepted ──▶ watcher ── list, page by page ──▶ ended
//
// The load is open: an order is due at its time whether or not the ones before were answered, and its latency counts from then. A slow
// service cannot make itself look fast by slowing the sender down. How long an order took to its end is by the service's own clock,
// from its creation to its last change, so that the watcher's pace does not show in it.
//
// # Invariants
//
//   - The mix is exact: after any number of orders each kind has its share, up to one order.
//   - Every order has a client key of this run, and nothing is sent twice.
//
// # Failure behaviour
//
// An order that is not taken is counted with its reason and the load goes on. When the context ends, nothing more is sent and the
// report tells what is known; orders without an end are OPEN.
package load
