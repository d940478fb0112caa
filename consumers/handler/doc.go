// Package handler runs a destination that is written in Go: the same protocol as a destination file, with a program's own code in the
// place of the HTTP request.
//
// # Model
//
//	Kafka ──▶ ingest ──▶ claim ──▶ Prepare ──▶ stored ──▶ Send ──▶ recorded ──(the saga is unwound)──▶ Undo
//	                      (locked, asks nobody)   │         ▲  │        reply and undo bytes
//	                                              └─ the ───┘  └─ not known ──▶ again with the same bytes, or Lookup
//	                                               same bytes
//
// A [Handler] makes a request's bytes, sends them, and undoes a success with bytes that came with it. What happens next is told by the
// error that it gives:
//
//	nil            it is done
//	Refuse         decided against it, for good              → OnRefused
//	RetryAfter     not processed, ask again later            → another attempt, charged
//	NotSent        not processed, it cannot be reached       → outage: waits for Patience, charges nothing
//	Misconfigured  not processed, the set-up is at fault     → outage
//	Unknown        may have been processed                   → Lookup, or the same again, or parked
//	any other error, and a panic                             → as Unknown
//	Pending        accepted, not done yet                    → Lookup
//	NotFound       Lookup: it was not processed              → another attempt
//	Skip           nothing to do                             → counts as done
//	Park           nothing was done, a person has to look    → parked
//
// # Invariants
//
//   - G3, G4: what Prepare made is stored before Send is called, and every attempt gets these bytes and one key.
//   - G6: the undo bytes are stored with the success, in one transaction.
//   - G10: a panic, a hang, or an error that nobody thought of is never a refusal.
//   - Nothing that a handler does ends the process, except that every place hangs.
//
// # A handler that hangs
//
// The context of a call ends after Timeout. A handler that goes on beyond Margin hangs: readiness fails, its place stays taken, its lease
// runs out, and the step goes on here or in another process as one that may have happened. What it brings later still counts if it is a
// success (G5). When all places hang, Run returns a *HungError: only a new process has places again. Prepare has one second; then its step
// is parked.
//
// # Failure behaviour
//
// Run ends with an error where waiting would not help: a wrong option, a name that a destination file has, a schema that is not
// registered. Without database or Kafka at the start it ends too. While it runs, package consumers says what their absence means.
package handler
