package endpoint

import (
	"context"
	"encoding/json"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/destination/call"
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
	var request render.Request
	if step.Sent && json.Unmarshal(step.Content, &request) != nil {
		return out
	}
	x := call.Exchange{}
	if reply != nil {
		x.Status, x.Body = reply.Status, reply.Body
	}
	s, err := h.version(ctx, step.SpecVersion)
	out.Revert, out.Undo = h.undo(s, err, consumers.Call{Claimed: step.Claimed}, request, x)
	return out
}
