// Package sim simulates the external systems that orders go out to: inventory,
// fraud check, shipping, billing and notifications. It behaves well and badly
// on demand, and it remembers everything, so that it can be the judge of
// everything that calls it.
//
// # Two ledgers
//
// The calls ledger holds every request to a destination as it came, in order
// of arrival, and how it ended. The effects ledger holds what happened in the
// outside world: a charge, a refund, a stock hold, a release, a shipment … A
// call may have no effect, and never has more than one. Both lie in one file
// of the simulator's own, which nothing else writes; [Check] judges the second.
//
// # The way of a call
//
//	arrive ── recorded ──▶ fault? ── reset, reply, unavailable ──▶ end, nothing done
//	                         │ none, lose, stall-body, hang (before: waits here)
//	                         ▼
//	                     failure rate ──▶ 503 or 429, nothing done, not remembered
//	                         ▼
//	             key known? ──▶ earlier answer, byte for byte (other request: 422)
//	             key in use? ──▶ 409 in_progress
//	                         │ no                          (hang during: waits here)
//	                         ▼
//	           refuse, or have the effect ── one record ── fsync
//	                         ▼                             (hang after: waits here)
//	           reply, or cut (lose), or half a reply (stall-body)
//
// # Invariants
//
//   - S1 An effect is on disk before its reply leaves. After a kill -9 at any
//     moment the file tells what happened, and a repeat under the same key
//     gets the answer that was, or would have been, given.
//   - S2 Effect and remembered answer are one record: neither is kept alone.
//   - S3 Under a key that dedupes there is at most one effect, also for calls
//     that arrive at the same time.
//   - S4 A thing is ended at most once, and only if it was made.
//   - S5 Amounts are kept and given back digit for digit; sums are exact.
//   - S6 Chance is a function of seed, order and attempt: a run repeats
//     whatever the order in which its calls arrive.
//
// # Idempotency
//
// Each destination remembers the first processed answer under an
// Idempotency-Key: successes and definite refusals (4xx of the operation).
// Answers that say "not now" (503, 429) and "not understood" (400, and a
// notification's missing field) were not processed and are not remembered. A
// repeat has the header Idempotent-Replayed: true. See [Idempotency] for the
// other modes. Without a key every call is processed.
//
// GET /api/AREA/by-key/KEY tells what is known under a key, whatever the mode:
// the members of the first answer with "status" done, undone, refused,
// in_progress, or 404 and not_found; the answer as it was is in "reply".
//
// # Refusing an order for good
//
// A forward call is refused with 422 if the order is listed in
// [Settings.Refuse], if any call of the order so far carried the text
// "refuse-DESTINATION" in its body (say, in the customer id) or in its
// aggregate id, or by the chance in [Settings.Refusals]. Fixed variants of the
// endpoints (…/succeed, …/fail) are never refused.
//
// # Failure behaviour
//
// If the file cannot be written or synced, the simulator answers 500 and fails
// its health check: an effect that cannot be recorded must not happen. Faults
// and changed settings are not kept over a restart; keys, attempts and things
// are. Header names are recorded in canonical form, not as on the wire.
package sim
