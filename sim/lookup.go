package sim

import (
	"encoding/json"
	"net/http"
)

// The values of "status" in a lookup's answer.
const (
	lookupDone       = "done"
	lookupUndone     = "undone"      // done, and ended by an undo since
	lookupRefused    = "refused"     // processed, and refused for good
	lookupInProgress = "in_progress" // being processed now
	lookupNotFound   = "not_found"   // sent with 404
)

// lookup answers what is known under a key. It only reads, so it fails by
// fault but never by chance.
func (x *exchange) lookup(f *Fault) {
	if f.hangsAt(HangBefore) && !x.sim.sleep(x.r.Context(), x.stop, f.wait()) || !x.latency() {
		x.interrupted(f)
		return
	}
	switch {
	case f.is(Reset), f.is(RefuseConnection):
		x.sim.finish(&x.call, Reply{Fault: f.label()})
		x.cut(true)
	case f.is(ReplyWith):
		x.sim.finish(&x.call, Reply{Status: f.Status, Fault: f.label()})
		x.send(reply{status: f.Status, header: f.Header, body: f.Body})
	case f.is(Unavailable):
		x.fail(failure{http.StatusServiceUnavailable, "unavailable", "the destination is down", f.RetryAfter}, f)
	default:
		x.answerLookup(f)
	}
}

func (x *exchange) answerLookup(f *Fault) {
	s := x.sim
	id := idOf(x.ep.destination, x.id)
	s.mu.Lock()
	_, busy := s.inflight[id]
	ref, known := s.book.answers[id]
	state := lookupDone
	if known {
		state = s.book.stateOf(ref)
	}
	s.mu.Unlock()

	switch {
	case busy:
		x.tell(http.StatusOK, map[string]json.RawMessage{}, lookupInProgress, f)
	case !known:
		x.tell(http.StatusNotFound, map[string]json.RawMessage{}, lookupNotFound, f)
	default:
		a, err := s.readAnswer(ref)
		if err != nil {
			x.broken(err)
			return
		}
		body := map[string]json.RawMessage{}
		if json.Unmarshal(a.Body, &body) == nil {
			body["reply"] = json.RawMessage(a.Body)
		}
		body["httpStatus"] = encode(a.Status)
		x.tell(http.StatusOK, body, state, f)
	}
}

// tell sends the members of the first answer with the lookup's own status in
// the place of theirs; the first answer as it was is in "reply".
func (x *exchange) tell(status int, body map[string]json.RawMessage, state string, f *Fault) {
	body["status"] = encode(state)
	body["idempotencyKey"] = encode(x.id)
	x.sim.finish(&x.call, Reply{Status: status, Fault: f.label()})
	x.deliver(f, reply{status: status, body: encode(body)})
}

func (b *book) stateOf(ref answerRef) string {
	if ref.refused {
		return lookupRefused
	}
	if ref.effect > 0 {
		e := b.effects[ref.effect-1]
		if t := b.things[e.Thing]; e.Direction == Do && t != nil && t.undone {
			return lookupUndone
		}
	}
	return lookupDone
}
