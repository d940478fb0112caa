package sim

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// maxBody is the largest request body that is read, in bytes.
const maxBody = 1 << 20

// exchange is one call on its way through the simulator.
type exchange struct {
	sim  *Sim
	w    http.ResponseWriter
	r    *http.Request
	stop *interruption
	ep   *endpoint
	id   string
	call Call
	now  time.Time
}

// reply is what is to be sent.
type reply struct {
	status     int
	body       []byte
	header     http.Header
	retryAfter int
	replayed   bool
}

// serveCall handles a request to a destination.
func (s *Sim) serveCall(w http.ResponseWriter, r *http.Request) {
	s.flow.RLock()
	defer s.flow.RUnlock()
	x := &exchange{sim: s, w: w, r: r, stop: s.interrupt.Load(), now: s.cfg.Now().UTC()}
	if err := s.Err(); err != nil {
		x.broken(err)
		return
	}
	body, status, err := readBody(w, r)
	x.describe(body, &status)
	if err := s.arrive(&x.call); err != nil {
		x.broken(err)
		return
	}
	switch {
	case err != nil:
		// The client died while sending: nobody is there to answer.
		s.finish(&x.call, Reply{Fault: "request not read to its end"})
		x.cut(false)
	case status != 0:
		x.plain(status, "invalid_request", http.StatusText(status), nil)
	case x.ep.direction == Lookup:
		x.lookup(s.script.pick(&x.call))
	default:
		x.run(s.script.pick(&x.call))
	}
}

// readBody returns what arrived of the body, and a status if it is too long.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, err error) {
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return body, http.StatusRequestEntityTooLarge, nil
	}
	return body, 0, err
}

// describe fills the call from the request. It sets status when no endpoint
// takes it.
func (x *exchange) describe(body []byte, status *int) {
	r := x.r
	x.call = Call{
		At: x.now, Method: r.Method, Target: r.RequestURI, Host: r.Host, Header: r.Header, Body: body,
		Key: r.Header.Get("Idempotency-Key"), Aggregate: r.Header.Get("X-Aggregate-Id"),
	}
	if x.call.Target == "" { // a request made by hand rather than read from a wire
		x.call.Target = r.URL.RequestURI()
	}
	if x.call.Aggregate == "" {
		x.call.Aggregate = r.Header.Get("X-Revert-Aggregate-Id")
	}
	if x.call.Aggregate == "" {
		if f, err := parseFields(body); err == nil {
			x.call.Aggregate = f.text("orderId")
		}
	}
	ep, id, code := x.sim.route(r.Method, r.URL.EscapedPath())
	if ep == nil {
		if *status == 0 {
			*status = code
		}
		return
	}
	x.ep, x.id = ep, id
	x.call.Destination, x.call.Direction, x.call.Endpoint = ep.destination, ep.direction, ep.name
	if ep.direction == Lookup {
		x.call.Key = id
	}
}

// run takes a call through its fault, the random failure, and the work.
func (x *exchange) run(f *Fault) {
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
	case x.failsByChance():
		x.fail(x.ep.failure, f)
	default:
		x.process(f)
	}
}

func (x *exchange) latency() bool {
	l := x.sim.Settings().Latency[x.call.Destination]
	d := l.pick(draw(x.sim.cfg.Seed, "latency", strconv.FormatInt(x.call.Seq, 10)))
	return d <= 0 || x.sim.sleep(x.r.Context(), x.stop, d)
}

// failsByChance draws per order and attempt, not per arrival, so that a run
// fails at the same places whatever the timing (S6).
func (x *exchange) failsByChance() bool {
	switch x.ep.outcome {
	case alwaysSucceeds:
		return false
	case alwaysFails:
		return true
	}
	attempt := x.call.Attempt
	if attempt == 0 {
		attempt = int(x.call.Seq)
	}
	rate := x.sim.Settings().Rates[x.ep.name]
	return rate.hits(x.sim.cfg.Seed, x.ep.name, x.call.Aggregate, strconv.Itoa(attempt))
}

// fail answers that the destination cannot process anything now.
func (x *exchange) fail(why failure, f *Fault) {
	body := refusal(&x.call, x.now, why.code, why.message)
	body.RetryAfter = why.retryAfter
	x.sim.finish(&x.call, Reply{Status: why.status, Fault: f.label()})
	x.deliver(f, reply{status: why.status, body: encode(body), retryAfter: why.retryAfter})
}

// plain answers with an error that is not remembered.
func (x *exchange) plain(status int, code, message string, f *Fault) {
	x.sim.finish(&x.call, Reply{Status: status, Fault: f.label()})
	x.deliver(f, reply{status: status, body: encode(refusal(&x.call, x.now, code, message))})
}

// interrupted ends a call that waited when the simulator was stopped or reset.
func (x *exchange) interrupted(f *Fault) {
	x.sim.finish(&x.call, Reply{Fault: "interrupted: " + f.label()})
	x.cut(false)
}

// broken answers when the ledger takes nothing more: an effect that cannot be
// recorded must not happen.
func (x *exchange) broken(err error) {
	x.sim.logger.Error("sim: call refused", "error", err)
	x.send(reply{status: http.StatusInternalServerError, body: encode(
		refusal(&x.call, x.now, "ledger_unavailable", "the simulator's ledger cannot be written; see its log"))})
}

// deliver sends the reply the way the fault wants it.
func (x *exchange) deliver(f *Fault, rep reply) {
	switch {
	case f.is(Lose):
		x.cut(false)
	case f.is(StallBody):
		x.stall(f, rep)
	case f.hangsAt(HangAfter):
		if !x.sim.sleep(x.r.Context(), x.stop, f.wait()) {
			x.cut(false)
			return
		}
		x.send(rep)
	default:
		x.send(rep)
	}
}

func (x *exchange) send(rep reply) {
	x.head(rep)
	_, _ = x.w.Write(rep.body) // a client that has gone is no error here
}

func (x *exchange) head(rep reply) {
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	for name, values := range rep.header {
		h[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	if rep.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(rep.retryAfter))
	}
	if rep.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	x.w.WriteHeader(rep.status)
}

// stall announces the whole body and sends half of it.
func (x *exchange) stall(f *Fault, rep reply) {
	x.w.Header().Set("Content-Length", fmt.Sprint(len(rep.body)))
	x.head(rep)
	_, _ = x.w.Write(rep.body[:len(rep.body)/2])
	_ = http.NewResponseController(x.w).Flush()
	x.sim.sleep(x.r.Context(), x.stop, f.wait())
	x.cut(false)
}

// cut closes the connection without a reply; with reset the client sees a
// connection reset rather than the end of the stream.
func (x *exchange) cut(reset bool) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		// No connection of our own (HTTP/2, or a stalled reply that has begun):
		// the server cuts it.
		panic(http.ErrAbortHandler)
	}
	if l, ok := conn.(interface{ SetLinger(int) error }); ok && reset {
		_ = l.SetLinger(0)
	}
	_ = conn.Close()
}
