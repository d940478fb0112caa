package endpoint

import (
	"context"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// Prove renders what undoing takes from the reply that an operator brings for a step, nil for none: then only a request that needs no
// reply can be rendered.
func (h *HTTP) Prove(ctx context.Context, step journal.Unsettled, reply *journal.Response) journal.Proof {
	out := journal.Proof{Reply: reply, Revert: saga.RevertBroken, Route: step.Route}
	if step.Dir == saga.Undo {
		out.Revert = 0
		return out
	}
	s, err := h.version(ctx, step.SpecVersion)
	if err != nil {
		return out
	}
	var request render.Request
	if step.Sent {
		if request, err = h.unpack(step.Content, place(step.Saga, step.Dest, step.Dir)); err != nil {
			return out
		}
	}
	hide := h.redactor(s)
	hide.Request(request) // so that it knows the values
	var full render.Response
	if reply != nil {
		full = render.Response(*reply)
		_, masked := hide.Reply(nil, reply.Body)
		out.Reply = &journal.Response{Status: reply.Status, Body: masked}
	}
	out.Revert, out.Undo, _ = h.undo(ctx, s, consumers.Call{Claimed: step.Claimed}, request, full, hide)
	return out
}
