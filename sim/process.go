package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/ebbline/ebb/sim/internal/appendlog"
)

// process does the work of a call once per key and answers it.
//
// The order is what makes a reply proof of its effect: decide and append under
// the lock, sync, and only then let go of the key and reply.
func (x *exchange) process(f *Fault) {
	s := x.sim
	body, err := parseFields(x.call.Body)
	if err != nil {
		x.plain(http.StatusBadRequest, "invalid_request", "the body is not a JSON object", f)
		return
	}
	mode := s.Settings().Idempotency[x.call.Destination]
	dedupes := x.call.Key != "" && mode.dedupes()
	if dedupes && !x.claim(mode, f) {
		return
	}
	rep, ok := x.durably(body, f, dedupes)
	if ok {
		x.deliver(f, rep)
	}
}

// durably works the call and returns its reply when that and the effect are on
// disk (S1). It lets go of the key whatever happens, but never before (S3).
func (x *exchange) durably(body fields, f *Fault, claimed bool) (reply, bool) {
	if claimed {
		defer x.unclaim()
	}
	if f.hangsAt(HangDuring) && !x.sim.sleep(x.r.Context(), x.stop, f.wait()) {
		x.interrupted(f)
		return reply{}, false
	}
	rep, span, err := x.work(body, f)
	if err == nil {
		err = x.sim.log.Sync(span)
	}
	if err != nil {
		x.broken(err)
		return reply{}, false
	}
	return rep, true
}

// claim takes the key for this call. When it cannot, it answers the call
// itself: with the earlier answer, or why there is none.
func (x *exchange) claim(mode Idempotency, f *Fault) bool {
	s, id, print := x.sim, idOf(x.call.Destination, x.call.Key), fingerprintOf(&x.call)
	s.mu.Lock()
	other, busy := s.inflight[id]
	ref, known := s.book.answers[id]
	known = known && mode.replays(ref.refused, ref.time(), s.cfg.Now())
	if !busy && !known {
		s.inflight[id] = print
	}
	s.mu.Unlock()

	switch {
	case !busy && !known:
		return true
	case busy && other != print, !busy && ref.print != print:
		x.plain(http.StatusUnprocessableEntity, "idempotency_key_reused",
			"this Idempotency-Key was used for another request", f)
	case busy:
		x.plain(http.StatusConflict, "in_progress", "a call under this Idempotency-Key is being processed", f)
	default:
		x.replay(ref, f)
	}
	return false
}

func (x *exchange) unclaim() {
	x.sim.mu.Lock()
	defer x.sim.mu.Unlock()
	delete(x.sim.inflight, idOf(x.call.Destination, x.call.Key))
}

// replay sends the remembered answer again, byte for byte.
func (x *exchange) replay(ref answerRef, f *Fault) {
	a, err := x.sim.readAnswer(ref)
	if err != nil {
		x.broken(err)
		return
	}
	recorded := Reply{Status: a.Status, Fault: f.label(), Replayed: true}
	if f.isLost() {
		recorded.Status = 0
	}
	x.sim.finish(&x.call, recorded)
	x.deliver(f, reply{status: a.Status, body: a.Body, replayed: true})
}

func (s *Sim) readAnswer(ref answerRef) (*answer, error) {
	payload, err := s.log.Read(ref.span)
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(payload, &r); err != nil || r.Done == nil || r.Done.Answer == nil {
		return nil, fmt.Errorf("sim: no answer in the record at byte %d", ref.span.Off)
	}
	return r.Done.Answer, nil
}

// work decides the call and appends its effect and answer as one record (S2).
func (x *exchange) work(body fields, f *Fault) (reply, appendlog.Span, error) {
	s := x.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now().UTC() // not x.now: the effect of a call that hung comes late
	op := &operation{ep: x.ep, call: &x.call, id: x.id, fields: body, book: &s.book, now: now}
	out, refused := x.refusal(op)
	if !refused {
		out = x.ep.run(op)
	}

	rep := reply{status: out.status, body: encode(out.body)}
	d := &done{Call: x.call.Seq, Reply: Reply{Status: out.status, Fault: f.label()}, Effect: out.effect}
	if f.isLost() {
		d.Reply.Status = 0
	}
	if out.effect != nil {
		d.Reply.Effect = out.effect.Seq
	}
	var head *answerHead
	if x.call.Key != "" && !out.forget {
		print := fingerprintOf(&x.call)
		head = &answerHead{
			Destination: x.call.Destination, Key: x.call.Key, Fingerprint: print[:], At: now, Status: out.status,
		}
		d.Answer = &answer{*head, rep.body}
	}
	span, err := s.append(record{Done: d})
	if err != nil {
		return reply{}, span, err
	}
	s.book.finish(span, d.Call, d.Effect, head)
	return rep, span, nil
}

// refusals are the reasons for which each destination refuses an order for good.
var refusals = map[string]struct{ code, message string }{
	Inventory:     {"out_of_stock", "an article of this order is out of stock"},
	FraudCheck:    {"fraud_declined", "the order was declined by the fraud check"},
	Shipping:      {"address_undeliverable", "the carrier does not deliver to this address"},
	Billing:       {"card_declined", "the card was declined"},
	Notifications: {"recipient_unsubscribed", "the recipient wants no messages"},
}

// refusal decides whether the destination refuses the order: because a rule or
// a marker says so, or by chance. The chance depends on the order and the kind
// of event only, so every attempt is refused alike.
func (x *exchange) refusal(op *operation) (outcome, bool) {
	if x.ep.direction != Do || x.ep.outcome != byChance {
		return outcome{}, false
	}
	d, aggregate, settings := x.ep.destination, x.call.Aggregate, x.sim.Settings()
	if !slices.Contains(settings.Refuse[d], aggregate) && !x.sim.book.marks[aggregate][d] &&
		!settings.Refusals[d].hits(x.sim.cfg.Seed, "refuse", d, aggregate, x.r.Header.Get("X-Event-Type")) {
		return outcome{}, false
	}
	why := refusals[d]
	return op.refuse(http.StatusUnprocessableEntity, why.code, why.message), true
}
