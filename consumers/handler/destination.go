package handler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

// Destination says what a destination is and when it is called. The options mean what the keys of destination files mean.
type Destination struct {
	// Name of the destination, unique among files and programs: letters, digits, '-' and '_', beginning with a letter. Required.
	Name string
	// Handler makes its calls. If it is a Lookuper as well, outcomes that are not known are looked up. Required.
	Handler Handler
	// On names the event types. Required.
	On []string
	// Aggregate is the type of the aggregates whose events are read, from the topic "outbox.event." and it. Empty means "order".
	Aggregate string
	// Roles says what event types that are not Ebb's own mean to their aggregates. Types that are missing are Change. All programs that
	// read a type must agree.
	Roles map[string]Role
	// Version names what the program does; change it when what is sent changes, so that a new version is registered. Empty is allowed.
	Version string
	// After names destinations that must have succeeded before, where they are in the event's plan.
	After []string
	// Idempotency says what the destination makes of a repeated key. The zero value is NotIdempotent: a step whose outcome is not known
	// is parked, unless it can be looked up.
	Idempotency Idempotency
	// Window is how long the destination remembers a key, for Idempotent and SuccessOnly; zero means for ever.
	Window time.Duration
	// Settle is how long after the end of a lease a request may still arrive: until then NotFound does not count. Zero means 30 s. For
	// a Lookuper only.
	Settle time.Duration
	// Timeout ends the context of a call. Zero means 30 s.
	Timeout time.Duration
	// Concurrency bounds calls at a time over all processes that run the destination. Zero means 16.
	Concurrency int
	// PerSecond bounds calls over all of them, and Burst how many may start at once; zero means no bound, and 1.
	PerSecond float64
	Burst     int
	// Ordering of the events of one aggregate. The zero value is OrderHold.
	Ordering Ordering
	// OnRefused says what a refusal does. The zero value is RefusalCompensates.
	OnRefused OnRefused
	// OnExhausted says what the end of Patience does. The zero value is ExhaustedParks.
	OnExhausted OnExhausted
	// Retry bounds attempts.
	Retry Retry
	// Patience bounds the waiting for a destination that is down. Zero means 24 h.
	Patience time.Duration
	// From says where the first version begins; later ones begin at the topics' ends. The zero value is FromNow.
	From From
}

// Retry bounds attempts that count.
type Retry struct {
	// MaxAttempts of Send and MaxUndoAttempts of Undo. Zero means 4 and 8.
	MaxAttempts     int
	MaxUndoAttempts int
	// Base is the wait after the first attempt, doubled up to Max. Zero means 2 s and 5 min.
	Base time.Duration
	Max  time.Duration
}

type (
	// Idempotency says what a destination makes of a repeated key.
	Idempotency = saga.Idempotency
	// Ordering says how the events of one aggregate wait for each other.
	Ordering = saga.Ordering
	// OnRefused says what a refusal does.
	OnRefused = saga.OnRefused
	// OnExhausted says what the end of patience does.
	OnExhausted = saga.OnExhausted
	// Role is what an event type means to its aggregate.
	Role = saga.Role
)

// Values of options.
const (
	NotIdempotent = saga.NotIdempotent // a repeated key does the work again
	SuccessOnly   = saga.SuccessOnly   // a success is remembered, a refusal is not
	Idempotent    = saga.Idempotent    // the first answer is final for the key, refusals too

	OrderHold = saga.OrderHold // an open step holds later events of its aggregate back
	OrderPass = saga.OrderPass // a parked one does not
	OrderNone = saga.OrderNone // nothing does

	RefusalCompensates = saga.RefusalCompensates
	RefusalParks       = saga.RefusalParks
	RefusalIgnored     = saga.RefusalIgnored

	ExhaustedParks       = saga.ExhaustedParks
	ExhaustedCompensates = saga.ExhaustedCompensates

	Create     = saga.Create     // begins an aggregate: its refusal unwinds all later events too
	Change     = saga.Change     // stands for itself
	Cancelling = saga.Cancelling // takes everything before it back; of orders only
)

// From is where a destination's first version begins.
type From struct {
	earliest bool
	at       time.Time
}

// Where a destination begins.
var (
	FromNow      = From{}               // only events that are written from now on
	FromEarliest = From{earliest: true} // every event that the topics still hold
)

// FromTime begins with the first records of that time or later, by their timestamps.
func FromTime(at time.Time) From { return From{at: at} }

func (d Destination) withDefaults() Destination {
	duration := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	count := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	duration(&d.Timeout, 30*time.Second)
	duration(&d.Settle, 30*time.Second)
	duration(&d.Patience, 24*time.Hour)
	duration(&d.Retry.Base, 2*time.Second)
	duration(&d.Retry.Max, 5*time.Minute)
	count(&d.Concurrency, 16)
	count(&d.Retry.MaxAttempts, 4)
	count(&d.Retry.MaxUndoAttempts, 8)
	if d.Aggregate == "" {
		d.Aggregate = schemas.AggregateOrder
	}
	if d.PerSecond > 0 {
		count(&d.Burst, 1)
	}
	return d
}

var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// aggregatePattern is what an outbox row allows.
var aggregatePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// problems lists everything that is wrong, of the destination as it was given.
func (d Destination) problems() []error {
	var out []error
	report := func(bad bool, format string, args ...any) {
		if bad {
			out = append(out, fmt.Errorf("handler: Destination."+format, args...))
		}
	}
	report(!namePattern.MatchString(d.Name), "Name has %d characters and must be 1 to 64 letters, digits, '-' or '_', beginning with a letter", len(d.Name))
	report(d.Aggregate != "" && !aggregatePattern.MatchString(d.Aggregate), "Aggregate has %d characters and must be 1 to 200 of A-Z a-z 0-9 . _ -", len(d.Aggregate))
	for eventType, role := range d.Roles {
		report(role < Create || role > Cancelling, "Roles has no role for %q; use Create or Change", eventType)
		report(role == Cancelling && d.Aggregate != "" && d.Aggregate != schemas.AggregateOrder,
			"Roles: %q is Cancelling, which the compensator reads from the order topic only", eventType)
	}
	report(d.Handler == nil, "Handler is nil")
	report(len(d.On) == 0, "On is empty; name the event types, such as OrderCreated")
	report(slices.Contains(d.On, ""), "On has an empty event type")
	report(slices.Contains(d.After, d.Name), "After has the destination itself")
	report(d.Window > 0 && d.Idempotency == NotIdempotent, "Window is how long a key is remembered, and Idempotency is NotIdempotent")
	report(d.PerSecond < 0 || d.PerSecond > 1e6, "PerSecond %v is not between 0 and 1,000,000", d.PerSecond)
	report(d.Burst > 0 && d.PerSecond == 0, "Burst is given without PerSecond")
	report(d.Retry.Max != 0 && d.Retry.Max < d.Retry.Base, "Retry.Max %s is below Retry.Base %s", d.Retry.Max, d.Retry.Base)
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Window", int64(d.Window)}, {"Settle", int64(d.Settle)}, {"Timeout", int64(d.Timeout)}, {"Concurrency", int64(d.Concurrency)},
		{"Burst", int64(d.Burst)}, {"Patience", int64(d.Patience)}, {"Retry.MaxAttempts", int64(d.Retry.MaxAttempts)},
		{"Retry.MaxUndoAttempts", int64(d.Retry.MaxUndoAttempts)}, {"Retry.Base", int64(d.Retry.Base)}, {"Retry.Max", int64(d.Retry.Max)},
	} {
		report(n.value < 0, "%s is negative", n.name)
	}
	return out
}

// rules are the options as the journal keeps them.
func (d Destination) rules() saga.Rules {
	out := saga.Rules{
		After: d.After, Idempotency: d.Idempotency, Window: d.Window, Ordering: d.Ordering, OnRefused: d.OnRefused, OnExhausted: d.OnExhausted,
		MaxAttempts: d.Retry.MaxAttempts, MaxUndoAttempts: d.Retry.MaxUndoAttempts, BackoffBase: d.Retry.Base, BackoffMax: d.Retry.Max,
		Patience: d.Patience,
	}
	if _, asks := d.Handler.(Lookuper); asks {
		out.Lookup, out.Settle = true, d.Settle
	}
	return out
}

// registered is what a version is: its hash is of what is pinned to a step, so that a new timeout makes no new version.
func (d Destination) registered() (journal.Destination, error) {
	out := journal.Destination{Name: d.Name, EventTypes: slices.Clone(d.On), Rules: d.rules()}
	slices.Sort(out.EventTypes)
	source, err := json.MarshalIndent(struct {
		Destination string     `json:"destination"`
		Kind        string     `json:"kind"`
		Version     string     `json:"version"`
		Aggregate   string     `json:"aggregate"`
		On          []string   `json:"on"`
		Rules       saga.Rules `json:"rules"`
	}{d.Name, string(journal.KindGo), d.Version, d.Aggregate, out.EventTypes, out.Rules}, "", "  ")
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256(source)
	out.Source, out.Hash = source, hex.EncodeToString(sum[:])
	return out, nil
}

// validate joins all problems of both.
func validate(c Config, d Destination) error {
	return errors.Join(append(c.problems(), d.problems()...)...)
}
