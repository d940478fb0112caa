package outbox

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Limits of one event and of one Write. The table's CHECKs repeat those of the
// event.
const (
	// MaxPayload is the largest payload in bytes (512 KiB). Kafka's and
	// Connect's default limits are 1 MiB for a whole record.
	MaxPayload = 512 << 10
	// MaxAggregateID is the longest aggregate id in bytes.
	MaxAggregateID = 512
	// MaxType is the longest event type in bytes.
	MaxType = 200
	// MaxTraceParent is the longest trace parent in bytes.
	MaxTraceParent = 128
	// MaxEvents is the largest number of events in one Write. A very large
	// transaction reaches the readers late and spills to disk on its way.
	MaxEvents = 10_000
)

// Event is one immutable fact about an aggregate: one row, one Kafka record.
type Event struct {
	// ID names the event for ever. It must be a UUIDv7. Zero means that the
	// database makes one from its own clock.
	ID uuid.UUID
	// AggregateType becomes the topic's name behind "outbox.event.":
	// 1 to 200 of A-Z a-z 0-9 . _ -
	AggregateType string
	// AggregateID becomes the record's key: 1 to MaxAggregateID bytes of UTF-8
	// without control characters.
	AggregateID string
	// Type names the kind of fact: 1 to MaxType bytes of UTF-8 without control
	// characters.
	Type string
	// Payload is sent byte for byte, at most MaxPayload bytes. Nil is a
	// tombstone and refused unless AllowTombstone is set here and on the Table.
	Payload []byte
	// AllowTombstone permits a nil Payload.
	AllowTombstone bool
	// Version is the aggregate's version after this fact; readers order by it.
	// 0 means that the aggregate has no versions. Not negative.
	Version int64
	// SchemaVersion is the version of the payload's schema. Not negative.
	SchemaVersion int
	// TraceParent is a W3C trace parent, or empty.
	TraceParent string
}

// InvalidError says what is wrong with one event of a Write. It carries sizes
// and positions, never a payload.
type InvalidError struct {
	Index    int      // position in the Write call, from 0
	Problems []string // one sentence each, at least one
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("outbox: event %d: %s", e.Index, strings.Join(e.Problems, "; "))
}

const aggregateTypeRule = `^[A-Za-z0-9._-]{1,200}$`

var aggregateTypePattern = regexp.MustCompile(aggregateTypeRule)

// check returns every problem of the event, nil if there is none.
func (e *Event) check() []string {
	var problems []string
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if e.ID != uuid.Nil && (e.ID.Version() != 7 || e.ID.Variant() != uuid.RFC4122) {
		report("id %s is not a UUIDv7; leave it zero and the database makes one", e.ID)
	}
	if !aggregateTypePattern.MatchString(e.AggregateType) {
		report("aggregate type %s does not match %s", clip(e.AggregateType), aggregateTypeRule)
	}
	if problem := checkText(e.AggregateID, MaxAggregateID); problem != "" {
		report("aggregate id %s", problem)
	}
	if problem := checkText(e.Type, MaxType); problem != "" {
		report("type %s", problem)
	}
	switch {
	case e.Payload == nil && !e.AllowTombstone:
		report("payload is nil, a tombstone; set AllowTombstone if that is meant")
	case len(e.Payload) > MaxPayload:
		report("payload has %d bytes, the limit is %d; send a reference and a hash instead", len(e.Payload), MaxPayload)
	}
	if e.Version < 0 {
		report("version %d is negative", e.Version)
	}
	if e.SchemaVersion < 0 || e.SchemaVersion > maxInt32 {
		report("schema version %d is not between 0 and %d", e.SchemaVersion, maxInt32)
	}
	if e.TraceParent != "" {
		if problem := checkText(e.TraceParent, MaxTraceParent); problem != "" {
			report("trace parent %s", problem)
		}
	}
	return problems
}

const maxInt32 = 1<<31 - 1

func checkText(s string, limit int) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > limit:
		return fmt.Sprintf("has %d bytes, the limit is %d", len(s), limit)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Sprintf("%q contains a control character", s)
	}
	return ""
}

// clip keeps an error readable and its size bounded whatever was passed in.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
}
