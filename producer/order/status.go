package order

import (
	"fmt"
	"slices"
)

// Status says how far an order has come.
type Status string

// The statuses of an order.
const (
	StatusPending    Status = "PENDING"    // created, its saga runs
	StatusConfirmed  Status = "CONFIRMED"  // its saga has completed
	StatusShipped    Status = "SHIPPED"    // the goods have left
	StatusDelivered  Status = "DELIVERED"  // the goods have arrived; final
	StatusCancelling Status = "CANCELLING" // cancelled, its saga is being unwound
	StatusCancelled  Status = "CANCELLED"  // cancelled and unwound; final
	StatusRejected   Status = "REJECTED"   // refused by a destination and unwound; final
)

var statuses = []Status{StatusPending, StatusConfirmed, StatusShipped, StatusDelivered, StatusCancelling, StatusCancelled, StatusRejected}

// Statuses returns every status, in the order of a life.
func Statuses() []Status { return slices.Clone(statuses) }

// ParseStatus reads a status as it is written; case matters.
func ParseStatus(s string) (Status, error) {
	if slices.Contains(statuses, Status(s)) {
		return Status(s), nil
	}
	return "", fmt.Errorf("order: unknown status %q, known are %v", s, statuses)
}

// Final reports whether nothing but an operator's case is left to come.
func (s Status) Final() bool {
	return s == StatusDelivered || s == StatusCancelled || s == StatusRejected
}

// Trigger is what may happen to an order after its creation.
type Trigger string

// Commands of a client, and news about the saga of the create event.
const (
	Ship    Trigger = "Ship"
	Deliver Trigger = "Deliver"
	Cancel  Trigger = "Cancel"

	SagaCompleted   Trigger = "SagaCompleted"
	SagaCompensated Trigger = "SagaCompensated"
	SagaParked      Trigger = "SagaParked"
	SagaResumed     Trigger = "SagaResumed"
)

type verdict uint8

const (
	refuse    verdict = iota // not allowed here
	move                     // to another status
	keep                     // already so, or of no meaning for the status
	attention                // keep, and let a person look
)

type cell struct {
	verdict verdict
	to      Status
}

// machine holds every cell that is not refuse; doc.go shows it whole.
var machine = map[Status]map[Trigger]cell{
	StatusPending: {
		Cancel:          {move, StatusCancelling},
		SagaCompleted:   {move, StatusConfirmed},
		SagaCompensated: {move, StatusRejected},
	},
	StatusConfirmed: {
		Ship:            {move, StatusShipped},
		Cancel:          {move, StatusCancelling},
		SagaCompleted:   {keep, StatusConfirmed},
		SagaCompensated: {move, StatusRejected},
	},
	StatusShipped: {
		Ship:            {keep, StatusShipped},
		Deliver:         {move, StatusDelivered},
		SagaCompleted:   {keep, StatusShipped},
		SagaCompensated: {attention, StatusShipped},
	},
	StatusDelivered: {
		Deliver:         {keep, StatusDelivered},
		SagaCompleted:   {keep, StatusDelivered},
		SagaCompensated: {attention, StatusDelivered},
	},
	StatusCancelling: {
		Cancel:          {keep, StatusCancelling},
		SagaCompleted:   {keep, StatusCancelling},
		SagaCompensated: {move, StatusCancelled},
	},
	StatusCancelled: {
		Cancel:          {keep, StatusCancelled},
		SagaCompleted:   {attention, StatusCancelled},
		SagaCompensated: {keep, StatusCancelled},
	},
	StatusRejected: {
		SagaCompleted:   {attention, StatusRejected},
		SagaCompensated: {keep, StatusRejected},
	},
}

// TransitionError is a command that the order's status forbids.
type TransitionError struct {
	OrderID int64
	Status  Status
	Trigger Trigger
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("order %d is %s: %s is not possible%s", e.OrderID, e.Status, e.Trigger, e.advice())
}

func (e *TransitionError) advice() string {
	var from []Status
	for _, s := range statuses {
		if c := machine[s][e.Trigger]; c.verdict == move {
			from = append(from, s)
		}
	}
	if e.Status == StatusPending && e.Trigger == Ship {
		return "; wait until it is CONFIRMED"
	}
	return fmt.Sprintf("; it is from %v", from)
}
