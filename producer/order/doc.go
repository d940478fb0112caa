// Package order is the domain of the order service: what an order is, what may
// happen to it, and what it makes of the news about its saga. It knows neither a
// database nor a wire format.
//
// # Status machine
//
// A client may ship, deliver and cancel; the pipeline reports how the saga of
// the order's create event goes on. "=" keeps the status and is a success,
// "!" keeps it and asks for an operator's attention, "-" is refused.
//
//	status      Ship     Deliver    Cancel      SagaCompleted  SagaCompensated
//	PENDING     -        -          CANCELLING  CONFIRMED      REJECTED
//	CONFIRMED   SHIPPED  -          CANCELLING  =              REJECTED
//	SHIPPED     =        DELIVERED  -           =              !
//	DELIVERED   -        =          -           =              !
//	CANCELLING  -        -          =           =              CANCELLED
//	CANCELLED   -        -          =           !              =
//	REJECTED    -        -          -           !              =
//
// The cells that are not obvious:
//
//   - Commands are repeatable: what is already so (Ship of SHIPPED, Cancel of
//     CANCELLING or CANCELLED) is a success without a new event, so that a client
//     that lost the answer can ask again.
//   - PENDING cannot be shipped: its saga may still be unwound.
//   - SagaCompleted in CANCELLING: the saga ended before the cancel reached it.
//     It will be unwound now; the order waits for SagaCompensated.
//   - SagaCompensated in CONFIRMED: an operator unwound a finished saga.
//   - SagaCompensated in SHIPPED or DELIVERED: the same, but the goods have left.
//     What is done cannot be taken back by a status, so a person has to look.
//   - SagaCompensated in CANCELLED or REJECTED: a step that turned out to have
//     happened reopened the saga, and now that is undone, too.
//   - SagaCompleted in CANCELLED or REJECTED contradicts proof already given.
//
// SagaParked and SagaResumed never move the status. They set and clear the
// attention text beside it.
//
// # Invariants
//
//   - Only the saga of the create event counts; the sagas of later events of the
//     order are reported as OtherSaga and change nothing.
//   - An outcome whose revision is not above the last one applied is Stale and
//     changes nothing, so outcomes may be repeated and reordered.
//   - Version counts the events of the order: 1 for the creation, one more for
//     every event after it. An outcome is no event of the order and leaves it.
//   - An Amount is exact decimal text. No number passes through a float.
package order
