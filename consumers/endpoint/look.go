package endpoint

import (
	"context"
	"fmt"
	"net/http"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/journal/saga"
)

// look asks the destination what became of a request that may have been processed. It is a call like any other, under a key of its own:
// it has nothing to do with what the destination remembers of the request.
func (h *HTTP) look(ctx context.Context, s *spec.Spec, c consumers.Call, request render.Request) consumers.Ended {
	in := input(c.Saga, c.EventType, c.Aggregate.ID, c.EventBody, c.EventTime, c.TraceParent)
	out, err := render.Lookup(s, in, request)
	if err != nil {
		return consumers.Ended{Class: saga.ClassParked, Reason: err.Error()}
	}
	if out.Outcome != render.OutcomeRequest {
		return consumers.Ended{Class: saga.ClassParked, Reason: out.Reason}
	}
	x := h.sender.Send(ctx, call.Attempt{Request: out.Request, Key: c.Key + ":lookup", Direction: call.Do, Deadline: c.Deadline})
	end := consumers.Ended{
		Reason: "lookup: " + reason(x), HeldBack: heldBack(x), SpecHash: s.Hash(),
		Outage: x.Class == call.NotSent || x.Class == call.Misconfigured && !gone(x.Status) || x.Status >= 500,
	}
	end.Class, end.Reason = found(s.Lookup, x, end.Reason)
	hide := h.redactor(s)
	hide.Request(request) // so that it knows the values
	full := x.Body
	if end.Class == saga.ClassSucceeded {
		reply, err := render.Found(s, in, request, render.Response{Status: x.Status, Body: full})
		if err != nil || reply.Outcome != render.OutcomeRequest {
			// It happened: what cannot be read of it is missing where it is needed.
			end.Exchange.Err = reply.Reason
		} else {
			full = reply.Request.Body
		}
		var broken string
		end.Revert, end.Undo, broken = h.undo(ctx, s, c, request, render.Response{Status: x.Status, Body: full}, hide)
		end.Exchange.Err = notes(end.Exchange.Err, broken)
	}
	why := end.Exchange.Err
	x.Header, x.Body = hide.Reply(x.Header, full)
	end.Exchange = exchange(x)
	if why != "" {
		end.Exchange.Err = why
	}
	return end
}

func gone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// found tells what a lookup's reply says. Whatever it does not say leaves the question open.
func found(l *spec.LookupCall, x call.Exchange, why string) (saga.Class, string) {
	switch {
	case x.Err != nil || x.Status == 0:
		return saga.ClassUnknown, why
	case gone(x.Status):
		return saga.ClassNotFound, fmt.Sprintf("lookup: status %d", x.Status)
	case x.Status < 200 || x.Status > 299:
		return saga.ClassUnknown, fmt.Sprintf("lookup: status %d", x.Status)
	}
	reply := render.ParseReply(x.Body)
	is := func(c *spec.Condition) bool { return c != nil && reply.Matches(c) }
	switch {
	case is(l.RefusedWhen):
		return saga.ClassRefused, "lookup: refused_when holds"
	case is(l.NotFoundWhen):
		return saga.ClassNotFound, "lookup: not_found_when holds"
	case is(l.PendingWhen):
		return saga.ClassUnknown, "lookup: pending_when holds"
	case l.FoundWhen == nil || is(l.FoundWhen):
		return saga.ClassSucceeded, ""
	}
	return saga.ClassUnknown, "lookup: no condition holds"
}
