package call

import (
	"net/http"

	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

// Class says what the end of an attempt means for its step.
type Class string

// The classes.
const (
	// Succeeded: the work is done.
	Succeeded Class = "SUCCEEDED"
	// Refused: a definite no; the work is not done.
	Refused Class = "REFUSED"
	// Retry: not now; try again later under the same key.
	Retry Class = "RETRY"
	// NotSent: no byte of the request has left.
	NotSent Class = "NOT_SENT"
	// Unknown: the work may have been done.
	Unknown Class = "UNKNOWN"
	// Pending: accepted, and not done yet.
	Pending Class = "PENDING"
	// Misconfigured: our side or our set-up is at fault, not the order.
	Misconfigured Class = "MISCONFIGURED"
)

// Direction is that of a step.
type Direction string

// The directions.
const (
	Do   Direction = "do"
	Undo Direction = "undo"
)

// End is what is known about an attempt's end.
type End struct {
	Direction Direction
	Method    string
	// Sent is true when any byte of the request reached the socket.
	Sent bool
	// Status is the reply's status, 0 when there is no reply.
	Status int
	// Complete is true when the reply was read to its end.
	Complete bool
	// RetryAfter is true when the reply asks to wait.
	RetryAfter bool
	// MayHaveHappened is true when an earlier attempt of the step may have
	// done the work.
	MayHaveHappened bool
	// Setup is true when the attempt failed for a reason on our side: an
	// unresolvable reference, a bad address, a certificate that is not trusted.
	Setup bool
	// Answer is how the destination's file reads replies.
	Answer spec.Answer
	// Reply is the body; the zero value when it is not complete or not JSON.
	Reply render.Reply
}

// Verdict is the meaning of an End.
type Verdict struct {
	Class Class
	// Maybe is true when this attempt may have done the work, or leaves open
	// whether an earlier one has.
	Maybe bool
}

// Classify gives an attempt's end its meaning. It is a pure function.
func Classify(end End) Verdict {
	switch {
	case !end.Sent && end.Setup:
		return Verdict{Class: Misconfigured}
	case !end.Sent:
		return Verdict{Class: NotSent}
	case end.Status == 0 || !end.Complete:
		// Cut, timed out or unreadable: the work may have been done before.
		return Verdict{Class: Unknown, Maybe: true}
	}
	if class, ok := byRule(end); ok {
		return Verdict{Class: class, Maybe: class == Unknown || class == Pending || class == Retry && end.MayHaveHappened}
	}
	return byStanding(end)
}

// meanings turn the words of a file into classes.
var meanings = map[spec.Meaning]Class{
	spec.MeansSucceeded: Succeeded, spec.MeansRefused: Refused, spec.MeansRetry: Retry,
	spec.MeansUnknown: Unknown, spec.MeansMisconfigured: Misconfigured, spec.MeansPending: Pending,
}

// byRule asks the file: its rules first, then what makes a 2xx a success.
func byRule(end End) (Class, bool) {
	for _, rule := range end.Answer.Classify {
		if rule.Has(end.Status) && end.Reply.Matches(rule.When) {
			return meanings[rule.As], true
		}
	}
	success, failure, pending := end.Answer.SuccessWhen, end.Answer.FailureWhen, end.Answer.PendingWhen
	switch {
	case end.Status < 200 || end.Status > 299 || success == nil && failure == nil && pending == nil:
		return "", false
	case !end.Reply.IsJSON():
		// What the file wants to know is not there to be read: the work may
		// have been done, and an undo may be due.
		return Unknown, true
	case pending != nil && end.Reply.Matches(pending):
		return Pending, true
	case failure != nil && end.Reply.Matches(failure), success != nil && !end.Reply.Matches(success):
		return Refused, true
	case success == nil && failure == nil:
		return "", false
	}
	return Succeeded, true
}

// byStanding is the meaning of a complete reply that the file says nothing
// about.
func byStanding(end End) Verdict {
	switch {
	case end.Direction == Undo && end.Method == http.MethodDelete && isGone(end.Status):
		// What is not there needs no undoing; an earlier attempt may have
		// removed it.
		return Verdict{Class: Succeeded}
	case end.Status == http.StatusConflict && end.MayHaveHappened:
		// Our own earlier request may be the one in progress.
		return Verdict{Class: Retry, Maybe: true}
	case end.Status == http.StatusAccepted && end.Answer.Polled:
		// Accepted is not done, and there is a way to ask.
		return Verdict{Class: Pending, Maybe: true}
	case end.Status == http.StatusServiceUnavailable && end.RetryAfter:
		// Whoever names a time to come back has not taken the request.
		return Verdict{Class: Retry}
	}
	return byStatus(end.Status)
}

func isGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

func byStatus(status int) Verdict {
	switch status {
	case 400, 402, 404, 409, 410, 422:
		return Verdict{Class: Refused}
	case 423, 425, 429: // locked, too early, too many: not taken, and it says so
		return Verdict{Class: Retry}
	case 408, 499: // the server, or a proxy before it, gave up waiting
		return Verdict{Class: Unknown, Maybe: true}
	case 501:
		return Verdict{Class: Misconfigured}
	}
	switch {
	case status >= 200 && status < 300:
		return Verdict{Class: Succeeded}
	case status >= 300 && status < 500:
		// Redirects, authentication, and everything else that says the request
		// is not put as it should be. Not the customer's fault (G10).
		return Verdict{Class: Misconfigured}
	}
	// Other 5xx, and statuses outside the standard: no statement about the work.
	return Verdict{Class: Unknown, Maybe: true}
}
