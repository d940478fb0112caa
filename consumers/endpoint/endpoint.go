package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/render"
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
	c := call.FromSpec(cfg.Live, cfg.Lookup)
	c.Logger = cfg.Logger
	var err error
	if c.AllowPrivate, err = call.ParseAllowPrivate(setting(cfg.Lookup, call.EnvAllowPrivate)); err != nil {
		return nil, err
	}
	sender, err := call.NewSender(c)
	if err != nil {
		return nil, err
	}
	return &HTTP{cfg: cfg, sender: sender, specs: map[int]*spec.Spec{}}, nil
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
		return nil, fmt.Errorf("%s version %d cannot be read by this release: %w", v.Name, v.Version, err)
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
		return prepared(out.Request)
	case render.OutcomeSkip:
		return journal.Prepared{Class: saga.ClassSkipped, Reason: out.Reason}
	case render.OutcomeRefuse:
		return journal.Prepared{Class: saga.ClassRefused, Reason: out.Reason}
	default:
		return journal.Prepared{Class: saga.ClassParked, Reason: out.Reason}
	}
}

func prepared(r render.Request) journal.Prepared {
	content, err := json.Marshal(r)
	if err != nil {
		return journal.Prepared{Class: saga.ClassParked, Reason: "the request cannot be stored: " + err.Error()}
	}
	return journal.Prepared{Content: content, Route: r.Route}
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
}

// Attempt makes one call.
func (h *HTTP) Attempt(ctx context.Context, c consumers.Call) consumers.Ended {
	var request render.Request
	if err := json.Unmarshal(c.Content, &request); err != nil {
		return consumers.Ended{Class: saga.ClassParked, Reason: "the stored request cannot be read: " + err.Error()}
	}
	direction := call.Do
	if c.Dir == saga.Undo {
		direction = call.Undo
	}
	x := h.sender.Send(ctx, call.Attempt{
		Request: request, Key: c.Key, Direction: direction, Deadline: c.Deadline, MayHaveHappened: c.Maybe,
	})
	return h.ended(ctx, c, request, x)
}

func (h *HTTP) ended(ctx context.Context, c consumers.Call, request render.Request, x call.Exchange) consumers.Ended {
	class, known := classes[x.Class]
	if !known {
		class = saga.ClassUnknown
	}
	out := consumers.Ended{
		Class: class, RetryAfter: x.RetryAfter, Reason: reason(x), HeldBack: heldBack(x),
		Outage:   class == saga.ClassNotSent || class == saga.ClassMisconfigured || x.Status >= 500,
		Exchange: exchange(x),
	}
	s, err := h.version(ctx, c.SpecVersion)
	if err == nil {
		out.SpecHash = s.Hash()
	}
	if class == saga.ClassSucceeded && c.Dir == saga.Do {
		out.Revert, out.Undo = h.undo(s, err, c, request, x)
	}
	return out
}

// undo renders the undo request from the reply, at the moment of success (G6).
func (h *HTTP) undo(s *spec.Spec, err error, c consumers.Call, request render.Request, x call.Exchange) (saga.Revert, []byte) {
	if err != nil {
		return saga.RevertBroken, nil
	}
	in := input(c.Saga, c.EventType, c.Aggregate.ID, c.EventBody, c.EventTime, c.TraceParent)
	out, err := render.Undo(s, c.Route, in, request, render.Response{Status: x.Status, Body: x.Body})
	switch {
	case err != nil || out.Outcome == render.OutcomeBroken:
		return saga.RevertBroken, nil
	case out.Outcome == render.OutcomeNone:
		return saga.RevertNone, nil
	}
	content, err := json.Marshal(out.Request)
	if err != nil {
		return saga.RevertBroken, nil
	}
	return saga.RevertPinned, content
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
		BackoffBase: r.BackoffBase, BackoffMax: r.BackoffMax, Patience: r.Patience,
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
