// Package saga is the step protocol as pure code: what a saga and its steps are, and every rule by which they move.
//
// It knows no database, broker, clock or network. The journal's store loads an [Aggregate] under the aggregate's lock, calls
// one transition, and writes back what changed together with the emissions; the exhaustive model in this package's tests calls
// the very same transitions through every interleaving of two sagas, crashes, lost replies and frozen workers.
//
// # Sagas
//
//	              every do step SUCCEEDED, SKIPPED or ignored
//	  RUNNING ─────────────────────────────────────────────────▶ COMPLETED
//	     │ refused, or cancelled                                     │ cancelled, or its create refused
//	     ▼                                                           ▼
//	  FAILING ◀──────────────────────────────────────────────────────┘
//	     │ the compensator begins
//	     ▼            every do step settled, every undo step SUCCEEDED or SKIPPED
//	COMPENSATING ──────────────────────────────────────────────▶ COMPENSATED
//	     ▲                                                           │ a success becomes known late
//	     └───────────────────────────────────────────────────────────┘
//
// Attention is a flag beside the state, with a reason: an operator has to look, for as long as it is set.
//
// # Steps
//
//	state      means                                      leaves by
//	EXPECTED   planned, its group has not read the event  Ingest → WAITING; fence → ABANDONED
//	WAITING    read; its turn has not come                advance → READY; fence → ABANDONED
//	READY      may be claimed from Due on, retries too    Claim → CALLING; fence → ABANDONED, or RESOLVING if it may have happened
//	CALLING    an attempt is out, fenced by its epoch     Record, Release, Expire → any state below, READY or RESOLVING
//	RESOLVING  may have happened, must be found out       Claim → CALLING (a lookup, or the same key); any success → SUCCEEDED
//	PARKED     stopped for an operator, with a reason     Retry, Disprove; Prove, Done → SUCCEEDED; Waive → SKIPPED; fence;
//	                                                      any success → SUCCEEDED
//	SUCCEEDED  done, with its receipt and its undo        settled (an undo step is made when the saga is unwound)
//	SKIPPED    nothing to do, or waived                   settled
//	REFUSED    the destination said no                    settled; a late success → SUCCEEDED
//	ABANDONED  certainly never happened, never will       settled; a late success → SUCCEEDED
//
// An operator may also settle a step that is READY or RESOLVING, and waive one that is EXPECTED; Compensate unwinds a saga.
//
// # Invariants
//
//   - G3: whatever ends an attempt without a definite answer after a byte may have left sets Maybe, and nothing ever clears it
//     but a definite answer, of the destination or of an operator who has looked there.
//     A lookup's "refused" or "not found" is definite once nothing of the step can be under way any more.
//   - G5: a result is accepted from the holder of the step's epoch only, except that a success is proof whoever brings it.
//   - G7: undo steps are released in the reverse of Seq; one that cannot go on holds back only the steps it depended on.
//   - G8: a do step is not claimed while an earlier saga of its aggregate is open at the same destination or is being unwound.
//   - G9: COMPLETED means every do step of the plan is done; COMPENSATED means every do step is settled and everything that was
//     done is undone, has `revert: none`, or was waived. An open saga always has something due, calling, or attention, or waits
//     for an earlier saga of its aggregate that has, or, on its way back, for a later one.
//   - G10: NOT_SENT, MISCONFIGURED and an outage's 5xx are never charged and never start an unwinding by themselves.
//
// Every transition ends with advance, the one place where anything moves on by itself.
package saga
