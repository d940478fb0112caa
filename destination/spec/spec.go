package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// Defaults of keys that a file leaves out.
const (
	DefaultTimeout          = 30 * time.Second
	DefaultConcurrency      = 16
	DefaultBreakerAfter     = 3
	DefaultProbeEvery       = time.Second
	DefaultProbeMax         = 30 * time.Second
	DefaultMaxAttempts      = 4
	DefaultUndoMaxAttempts  = 8
	DefaultBackoffBase      = 2 * time.Second
	DefaultBackoffMax       = 5 * time.Minute
	DefaultRetryAfterCap    = 10 * time.Minute
	DefaultPatience         = 24 * time.Hour
	DefaultRetryAfterHeader = "Retry-After"
)

// Idempotency says what a destination does with a repeated Idempotency-Key.
type Idempotency string

// The modes of idempotency.
const (
	// IdempotentNever: a repeated key does the work again. The default.
	IdempotentNever Idempotency = "false"
	// IdempotentAlways: the first processed answer is final, refusals too.
	IdempotentAlways Idempotency = "true"
	// IdempotentSuccess: successes are remembered, refusals are not.
	IdempotentSuccess Idempotency = "success_only"
	// IdempotentWindow: as always, but only within Rules.IdempotencyWindow.
	IdempotentWindow Idempotency = "window"
)

// Reaction says what follows when a step cannot go on as planned.
type Reaction string

// The reactions. Each key allows some of them.
const (
	Park       Reaction = "park"       // stop for an operator
	Compensate Reaction = "compensate" // unwind the saga
	Ignore     Reaction = "ignore"     // record it and go on
	Skip       Reaction = "skip"       // no call, recorded as skipped
	Refuse     Reaction = "refuse"     // as if the destination had refused
)

// Ordering says how later events of an aggregate wait for earlier ones.
type Ordering string

// The orderings.
const (
	// OrderingHold: a parked step holds later events back. The default.
	OrderingHold Ordering = "hold"
	// OrderingPass: later events pass a parked one.
	OrderingPass Ordering = "pass"
	// OrderingNone: events of one aggregate may run in any order.
	OrderingNone Ordering = "none"
)

// Spec is one destination file, checked. It is immutable.
type Spec struct {
	// Name is the destination, for example "billing".
	Name string
	// File is the file's name as given to Parse.
	File string
	// BaseURL is scheme, host and an optional path prefix, with references.
	BaseURL Secret
	// Auth adds credentials at send. Zero means none.
	Auth Auth
	// Routes has at least one element.
	Routes []Route
	// Single is true for a file with request.url instead of routes: a false
	// condition then skips the step rather than asking Otherwise.
	Single bool
	// Lookup asks whether a forward call happened; nil where that cannot be asked.
	Lookup *LookupCall
	// Redact names the fields that are kept sealed and shown masked.
	Redact Redact

	rules     Rules
	source    []byte
	hash      string
	after     []named // as written under after
	from      []named // as written in conditions and placeholders
	reads     []read  // what is read of earlier replies
	warnings  []Problem
	redactPos Pos
}

// Route is one way to call the destination.
type Route struct {
	// When is nil for a route that always matches.
	When *Condition
	Call Call
	// Revert is nil for revert: none.
	Revert *Call
	// Pos is where the route begins in the file.
	Pos Pos
}

// Call is a request as templates.
type Call struct {
	Method string
	URL    URL
	// Headers are the file's own, in its order, with the destination's common
	// headers first. Credentials and standard headers are not among them.
	Headers []Header
	// Body is nil when nothing is sent.
	Body *Value
	// ContentType of the body; "" means that of JSON.
	ContentType string
	// Answer says how the replies are read.
	Answer Answer
}

// Header is one header field.
type Header struct {
	Name  string
	Value Template
}

// Rules are the parts of a file that decide when and how often a step runs,
// as plain data.
type Rules struct {
	Destination string
	// Hash is Spec.Hash.
	Hash string
	// EventTypes that the destination gets, in the file's order.
	EventTypes []string
	// After names the destinations that settle first: those under after, then
	// those that conditions and placeholders read from.
	After []string

	Idempotency Idempotency
	// IdempotencyWindow is how long the destination remembers a key, counted
	// from the first send; 0 means without end.
	IdempotencyWindow time.Duration

	OnRefused   Reaction // Compensate (default), Park or Ignore
	OnExhausted Reaction // Park (default) or Compensate
	Otherwise   Reaction // no route matches: Park (default), Skip or Refuse
	Ordering    Ordering

	// Lookup says that the file has one, and LookupSettle is its settle.
	Lookup       bool
	LookupSettle time.Duration

	// MaxAttempts and UndoMaxAttempts count all attempts, the first included.
	MaxAttempts     int
	UndoMaxAttempts int
	// BackoffBase is the wait after the first failed attempt; it doubles up
	// to BackoffMax.
	BackoffBase time.Duration
	BackoffMax  time.Duration
	RetryAfter  RetryAfter

	// Timeout covers one call from its start to the last byte of the reply.
	Timeout time.Duration
	// Patience is how long a step waits for a destination that is out.
	Patience time.Duration
	// Concurrency is the number of calls at a time over all replicas.
	Concurrency int
	// RateEvery is the time between two calls; 0 means no limit.
	RateEvery time.Duration
	// RateBurst calls may start at once before RateEvery holds.
	RateBurst int
	// BreakerAfter results in a row that are the destination's fault, over as
	// many steps, stop what is sent to it.
	BreakerAfter int
	// ProbeEvery is the first wait for a probe; it doubles up to ProbeMax.
	ProbeEvery time.Duration
	ProbeMax   time.Duration
}

// RetryAfter says how a destination's wish to wait is read.
type RetryAfter struct {
	// Header that carries the time to come back.
	Header string
	// Body is the place in the JSON of the reply that carries it, asked where
	// the header is absent. The zero Path means nowhere.
	Body Path
	// Format of both.
	Format WaitFormat
	// Fallback is the wait when neither can be read; 0 leaves it to the
	// backoff.
	Fallback time.Duration
	// Cap is the longest wait that is honoured.
	Cap time.Duration
}

// WaitFormat is a way to write down when to come back.
type WaitFormat string

// The formats.
const (
	// WaitAuto takes seconds, HTTP dates and ISO 8601 for what they are. The
	// default. It never takes a number for a Unix time.
	WaitAuto         WaitFormat = "auto"
	WaitSeconds      WaitFormat = "seconds"
	WaitMilliseconds WaitFormat = "milliseconds"
	WaitUnix         WaitFormat = "unix"    // seconds since 1970
	WaitUnixMillis   WaitFormat = "unix_ms" // milliseconds since 1970
	WaitHTTPDate     WaitFormat = "http_date"
	WaitISO8601      WaitFormat = "iso8601"
)

// Rules gives the file's rules. The caller owns the result.
func (s *Spec) Rules() Rules {
	r := s.rules
	r.EventTypes = slices.Clone(r.EventTypes)
	r.After = slices.Clone(r.After)
	return r
}

// HasRevert reports whether a route, known once a step has been rendered, has
// a call that undoes it.
func (s *Spec) HasRevert(route int) bool {
	return route >= 0 && route < len(s.Routes) && s.Routes[route].Revert != nil
}

// Hash identifies the file's content: SHA-256 of its bytes in hex.
func (s *Spec) Hash() string { return s.hash }

// Source gives the file's bytes. They hold references, never credentials. The
// caller owns the result.
func (s *Spec) Source() []byte { return slices.Clone(s.source) }

// Warnings are choices that work but deserve a look.
func (s *Spec) Warnings() []Problem { return slices.Clone(s.warnings) }

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
