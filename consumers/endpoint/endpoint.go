package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/seal"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// Versions gives registered versions of destinations.
type Versions interface {
	VersionOf(ctx context.Context, name string, version int) (*journal.Version, error)
}

// Config of an HTTP endpoint.
type Config struct {
	// Live is the newest destination file: its address, credentials and limits are used for every call. Required.
	Live *spec.Spec
	// Versions gives the files that steps are pinned to. Required.
	Versions Versions
	// Lookup resolves references to credentials and addresses, and gives settings such as EBB_ALLOW_PRIVATE. The zero value reads
	// environment and files.
	Lookup spec.Lookup
	// Logger gets a debug record per attempt. Nil means none.
	Logger *slog.Logger
}

// HTTP is the endpoint of one destination file.
type HTTP struct {
	cfg    Config
	sender *call.Sender
	ring   seal.Ring

	mu    sync.Mutex
	specs map[int]*spec.Spec
}

// New makes an endpoint; Close lets its connections go.
func New(cfg Config) (*HTTP, error) {
	if cfg.Live == nil || cfg.Versions == nil {
		return nil, errors.New("endpoint: Config.Live and Config.Versions are required")
	}
	if cfg.Lookup.Env == nil && cfg.Lookup.File == nil {
		cfg.Lookup = spec.OSLookup()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	ring, err := ringFor(cfg)
	if err != nil {
		return nil, err
	}
	c := call.FromSpec(cfg.Live, cfg.Lookup)
	c.Logger = cfg.Logger
	if c.AllowPrivate, err = call.ParseAllowPrivate(setting(cfg.Lookup, call.EnvAllowPrivate)); err != nil {
		return nil, err
	}
	sender, err := call.NewSender(c)
	if err != nil {
		return nil, err
	}
	return &HTTP{cfg: cfg, sender: sender, ring: ring, specs: map[int]*spec.Spec{}}, nil
}

// setting reads an optional setting from the environment; "" when it is not set.
func setting(from spec.Lookup, name string) string {
	if from.Env == nil {
		return ""
	}
	value, _ := from.Env(name)
	return value
}

// Close lets idle connections go.
func (h *HTTP) Close() { h.sender.Close() }

// unreadableError says that a registered file cannot be read by this release.
type unreadableError struct {
	name    string
	version int
	cause   error
}

func (e *unreadableError) Error() string {
	return fmt.Sprintf("%s version %d cannot be read by this release: %s", e.name, e.version, e.cause)
}

func (e *unreadableError) Unwrap() error { return e.cause }

// version gives the file of a version; parsed once.
func (h *HTTP) version(ctx context.Context, n int) (*spec.Spec, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.specs[n]; s != nil {
		return s, nil
	}
	v, err := h.cfg.Versions.VersionOf(ctx, h.cfg.Live.Name, n)
	if err != nil {
		return nil, err
	}
	s, err := spec.Parse(fmt.Sprintf("%s version %d", v.Name, v.Version), v.Source)
	if err != nil {
		return nil, &unreadableError{v.Name, v.Version, err}
	}
	h.specs[n] = s
	return s, nil
}

// Prepare renders the request of a first attempt.
func (h *HTTP) Prepare(ctx context.Context, c journal.Candidate) journal.Prepared {
	s, err := h.version(ctx, c.SpecVersion)
	if err != nil {
		return journal.Prepared{Class: saga.ClassParked, Reason: err.Error()}
	}
	in := input(c.Saga, c.EventType, c.Aggregate.ID, c.EventBody, c.EventTime, c.TraceParent)
	in.Responses = make(map[string]render.Response, len(c.Responses))
	for name, r := range c.Responses {
		in.Responses[name] = render.Response(r)
	}
	out, err := render.Do(s, in)
	if err != nil {
		return journal.Prepared{Class: saga.ClassParked, Reason: err.Error()}
	}
	switch out.Outcome {
	case render.OutcomeRequest:
		return h.prepared(s, c, out.Request)
	case render.OutcomeSkip:
		return journal.Prepared{Class: saga.ClassSkipped, Reason: out.Reason}
	case render.OutcomeRefuse:
		return journal.Prepared{Class: saga.ClassRefused, Reason: out.Reason}
	default:
		return journal.Prepared{Class: saga.ClassParked, Reason: out.Reason}
	}
}

func (h *HTTP) prepared(s *spec.Spec, c journal.Candidate, r render.Request) journal.Prepared {
	content, err := h.pack(r, h.redactor(s), place(c.Saga, c.Dest, saga.Do))
	if err != nil {
		return journal.Prepared{Class: saga.ClassParked, Reason: "the request cannot be stored: " + err.Error()}
	}
	return journal.Prepared{Content: content, Route: r.Route}
}

// redactor hides what the step's own file redacts and what the newest does: what is secret now was secret then.
func (h *HTTP) redactor(s *spec.Spec) *call.Redactor {
	return call.NewRedactor(s.Redact, h.cfg.Live.Redact)
}

func input(id saga.ID, eventType, aggregateID string, body []byte, at time.Time, traceparent string) render.Input {
	return render.Input{
		Event: body, EventID: id.String(), EventType: eventType, AggregateID: aggregateID, CreatedAt: createdAt(id, at), Traceparent: traceparent,
	}
}

// createdAt is the time in a UUIDv7, made by the clock of the event's database; other ids fall back to when the event was read.
func createdAt(id saga.ID, at time.Time) time.Time {
	if id[6]>>4 != 7 {
		return at
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC()
}

var classes = map[call.Class]saga.Class{
	call.Succeeded: saga.ClassSucceeded, call.Refused: saga.ClassRefused, call.Retry: saga.ClassRetry,
	call.NotSent: saga.ClassNotSent, call.Unknown: saga.ClassUnknown, call.Misconfigured: saga.ClassMisconfigured,
	call.Pending: saga.ClassPending,
}

// Attempt makes one call.
func (h *HTTP) Attempt(ctx context.Context, c consumers.Call) consumers.Ended {
	// Before the call: how its reply is read, and how it is undone, must be known when it comes.
	s, err := h.version(ctx, c.SpecVersion)
	if err != nil {
		return withoutSpec(err)
	}
	request, err := h.unpack(c.Content, place(c.Saga, c.Dest, c.Dir))
	if err != nil {
		return withoutRequest(err)
	}
	if c.Asking {
		return h.look(ctx, s, c, request)
	}
	direction, answer := call.Do, answerOf(s, c)
	if c.Dir == saga.Undo {
		direction = call.Undo
	}
	x := h.sender.Send(ctx, call.Attempt{
		Request: request, Key: c.Key, Direction: direction, Deadline: c.Deadline, MayHaveHappened: c.Maybe, Answer: answer,
	})
	return h.ended(ctx, s, c, request, answer, x)
}

// withoutSpec is the end of an attempt that was not made because its file could not be had.
func withoutSpec(err error) consumers.Ended {
	var unreadable *unreadableError
	if errors.As(err, &unreadable) {
		return consumers.Ended{Class: saga.ClassParked, Reason: err.Error()}
	}
	return consumers.Ended{Class: saga.ClassNotSent, Reason: "the destination's file could not be read from the journal: " + err.Error(), HeldBack: true}
}

// withoutRequest is the end of an attempt whose stored request could not be had. A missing key is our set-up, and is repaired there.
func withoutRequest(err error) consumers.Ended {
	var missing *seal.KeyError
	if errors.As(err, &missing) {
		return consumers.Ended{Class: saga.ClassMisconfigured, Reason: "the stored request: " + err.Error(), Outage: true}
	}
	return consumers.Ended{Class: saga.ClassParked, Reason: "the stored request cannot be read: " + err.Error()}
}

// answerOf is how the step's file reads the reply to this call.
func answerOf(s *spec.Spec, c consumers.Call) spec.Answer {
	switch {
	case c.Route < 0 || c.Route >= len(s.Routes):
		return spec.Answer{}
	case c.Dir == saga.Do:
		return s.Routes[c.Route].Call.Answer
	case s.Routes[c.Route].Revert != nil:
		return s.Routes[c.Route].Revert.Answer
	}
	return spec.Answer{}
}

func (h *HTTP) ended(ctx context.Context, s *spec.Spec, c consumers.Call, request render.Request, answer spec.Answer, x call.Exchange) consumers.Ended {
	class, known := classes[x.Class]
	if !known {
		class = saga.ClassUnknown
	}
	hide := h.redactor(s)
	hide.Request(request) // so that it knows the values
	out := consumers.Ended{
		Class: class, RetryAfter: x.RetryAfter, Reason: reason(x), HeldBack: heldBack(x),
		Outage:   class == saga.ClassNotSent || class == saga.ClassMisconfigured || x.Status >= 500 && class != saga.ClassRefused,
		SpecHash: s.Hash(),
	}
	full := x.Body
	x.Header, x.Body = hide.Reply(x.Header, x.Body)
	out.Exchange = exchange(x)
	if class != saga.ClassSucceeded {
		return out
	}
	if missing := lacks(answer, full); missing != "" {
		// It has happened, so it is a success; what needs the field will say so in its turn.
		out.Exchange.Err = missing
		h.cfg.Logger.WarnContext(ctx, "endpoint: reply lacks expected fields", slog.String("destination", c.Dest), slog.String("key", c.Key), slog.String("reason", missing))
	}
	if c.Dir == saga.Do {
		var why string
		out.Revert, out.Undo, why = h.undo(ctx, s, c, request, render.Response{Status: x.Status, Body: full}, hide)
		out.Exchange.Err = notes(out.Exchange.Err, why)
	}
	return out
}

// notes joins what there is to say about a success that is not all it should be.
func notes(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), "; ")
}

// lacks names the expected fields that the reply has not got.
func lacks(answer spec.Answer, body []byte) string {
	if len(answer.Expect) == 0 {
		return ""
	}
	reply := render.ParseReply(body)
	var missing []string
	for _, path := range answer.Expect {
		if !reply.Has(path) {
			missing = append(missing, path.String())
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "the reply lacks " + strings.Join(missing, ", ")
}

// undo renders the undo request from the reply, at the moment of success (G6). Where it is broken, why tells so; it is kept with the
// exchange, because the step has succeeded and only an unwinding needs it.
func (h *HTTP) undo(
	ctx context.Context, s *spec.Spec, c consumers.Call, request render.Request, reply render.Response, hide *call.Redactor,
) (revert saga.Revert, content []byte, why string) {
	in := input(c.Saga, c.EventType, c.Aggregate.ID, c.EventBody, c.EventTime, c.TraceParent)
	out, err := render.Undo(s, c.Route, in, request, reply)
	switch {
	case err != nil:
		why = err.Error()
	case out.Outcome == render.OutcomeNone:
		return saga.RevertNone, nil, ""
	case out.Outcome == render.OutcomeBroken:
		why = out.Reason
	default:
		if content, err = h.pack(out.Request, hide, place(c.Saga, c.Dest, saga.Undo)); err == nil {
			return saga.RevertPinned, content, ""
		}
		why = err.Error()
	}
	why = "the undo cannot be built: " + why
	h.cfg.Logger.WarnContext(ctx, "endpoint: undo is broken", slog.String("destination", c.Dest), slog.String("key", c.Key), slog.String("reason", why))
	return saga.RevertBroken, nil, why
}

func exchange(x call.Exchange) journal.Exchange {
	out := journal.Exchange{Sent: x.Sent, Status: x.Status, Body: x.Body, Started: x.Started, Duration: x.Ended.Sub(x.Started)}
	if x.Err != nil {
		out.Err = x.Err.Error()
	}
	if len(x.Header) > 0 {
		if header, err := json.Marshal(x.Header); err == nil {
			out.Header = header
		}
	}
	return out
}

// reason says how the attempt ended, without anything from the other side.
func reason(x call.Exchange) string {
	switch {
	case x.Class == call.Succeeded:
		return ""
	case x.Err != nil:
		return x.Err.Error()
	default:
		return fmt.Sprintf("status %d", x.Status)
	}
}

// heldBack tells an attempt that this process was too late to make.
func heldBack(x call.Exchange) bool {
	var e *call.Error
	return !x.Sent && errors.As(x.Err, &e) && (e.Kind == call.KindDeadline || e.Kind == call.KindHeldBack)
}

// Destination is what `ebb config apply` registers of a destination file.
func Destination(s *spec.Spec) journal.Destination {
	r := s.Rules()
	return journal.Destination{Name: s.Name, Hash: s.Hash(), Source: s.Source(), EventTypes: r.EventTypes, Rules: rules(r)}
}

func rules(r spec.Rules) saga.Rules {
	out := saga.Rules{
		After: r.After, MaxAttempts: r.MaxAttempts, MaxUndoAttempts: r.UndoMaxAttempts,
		BackoffBase: r.BackoffBase, BackoffMax: r.BackoffMax, Patience: r.Patience, Lookup: r.Lookup, Settle: r.LookupSettle,
	}
	switch r.Idempotency {
	case spec.IdempotentAlways:
		out.Idempotency = saga.Idempotent
	case spec.IdempotentWindow:
		out.Idempotency, out.Window = saga.Idempotent, r.IdempotencyWindow
	case spec.IdempotentSuccess:
		out.Idempotency = saga.SuccessOnly
	}
	switch r.Ordering {
	case spec.OrderingPass:
		out.Ordering = saga.OrderPass
	case spec.OrderingNone:
		out.Ordering = saga.OrderNone
	}
	switch r.OnRefused {
	case spec.Park:
		out.OnRefused = saga.RefusalParks
	case spec.Ignore:
		out.OnRefused = saga.RefusalIgnored
	}
	if r.OnExhausted == spec.Compensate {
		out.OnExhausted = saga.ExhaustedCompensates
	}
	return out
}
