// Package api is the other side of the benchmark: one HTTP server that plays every destination.
//
// # Model
//
// Every request waits the latency and is answered like the destinations that ship with Ebb are. An order whose body names
// "refuse-<destination>" is refused there with status 422. Nothing is stored but the Idempotency-Keys that were seen, so that a
// run can be checked afterwards: as many calls as the contender has audit rows, and no key that was worked twice.
//
//	POST   /api/inventory/reserve              reservationId      DELETE /api/inventory/{id}/release
//	POST   /api/fraud/check                    riskScore, below 50
//	POST   /api/domestic-shipping              shipmentId         POST   /api/domestic-shipping/{id}/cancel
//	POST   /api/billing                        transaction.id     POST   /api/billing/{id}/refund
//	POST   /api/notes                          noteId
//	GET    /stats                              what was seen      POST   /reset
//
// # Invariants
//
// A reply depends on the request alone, so a repetition gets the same reply. An effect is counted once per key.
package api
