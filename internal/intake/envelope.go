package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/schemas"
)

// MaxHeader bounds a header that is read, bytes. The id, a type, a number and a trace context are far below.
const MaxHeader = 1024

// Envelope names the headers in which a topic's records carry what an event is. The zero value is the contract of package schemas.
type Envelope struct {
	// ID is the header of the event's id, a UUID. Empty: "id".
	ID string
	// Type is the header of the event's type. Empty: "eventType".
	Type string
	// EventType is the type of records without a type header, for topics of one type. Empty: such records are dead letters.
	EventType string
	// Version is the header of the aggregate's version. Empty: "aggregateVersion", and records without it are in the order of their
	// partition. One that is named here has to be there: both orders in one topic would be none.
	Version string
	// Time is the header of the time at which the event was made: RFC 3339, or digits since 1970 in seconds, milliseconds, microseconds
	// or nanoseconds, told apart by their number. Empty: the event's id or the reading tells.
	Time string
	// TraceParent is the header of the trace context. Empty: "traceparent".
	TraceParent string
}

// Validate finds headers that would be read as two things.
func (e Envelope) Validate() error {
	used := map[string]string{}
	var problems []error
	f := e.withDefaults()
	for _, h := range [][2]string{{"id", f.ID}, {"type", f.Type}, {"version", f.Version}, {"time", f.Time}, {"trace context", f.TraceParent}} {
		if h[1] == "" {
			continue
		}
		if other, twice := used[h[1]]; twice {
			problems = append(problems, fmt.Errorf("header %q is named for the %s and for the %s of events", h[1], other, h[0]))
		}
		used[h[1]] = h[0]
	}
	return errors.Join(problems...)
}

func (e Envelope) withDefaults() Envelope {
	set := func(name *string, v string) {
		if *name == "" {
			*name = v
		}
	}
	set(&e.ID, schemas.HeaderID)
	set(&e.Type, schemas.HeaderEventType)
	set(&e.Version, schemas.HeaderAggregateVersion)
	set(&e.TraceParent, schemas.HeaderTraceParent)
	return e
}

// Meta is what a record's key and headers say.
type Meta struct {
	ID          saga.ID
	Type        string
	Key         string
	Version     int64
	Time        time.Time // zero: not said
	TraceParent string
}

// Read reads key and headers. The text says what is wrong with them, "" if nothing is, without any value of the record.
func (e Envelope) Read(r *kgo.Record) (Meta, string) {
	named := e.Version != ""
	e = e.withDefaults()
	h := Headers(r)
	var m Meta
	var fault string
	if m.ID, fault = readID(e.ID, h); fault != "" {
		return Meta{}, fault
	}
	if m.Type, fault = e.readType(h); fault != "" {
		return Meta{}, fault
	}
	if m.Key, fault = readKey(r); fault != "" {
		return Meta{}, fault
	}
	if m.Version, fault = e.readVersion(h, r, named); fault != "" {
		return Meta{}, fault
	}
	if m.Time, fault = e.readTime(h); fault != "" {
		return Meta{}, fault
	}
	if parent, ok := text(h, e.TraceParent); ok && len(parent) <= MaxHeader {
		m.TraceParent = parent
	}
	return m, ""
}

func readID(name string, h map[string]string) (saga.ID, string) {
	v, ok := text(h, name)
	if !ok {
		return saga.ID{}, fmt.Sprintf("header %s is missing; it has to be the event's UUID", name)
	}
	id, err := saga.ParseID(v)
	if err != nil {
		return saga.ID{}, fmt.Sprintf("header %s: %v", name, err)
	}
	return id, ""
}

func (e Envelope) readType(h map[string]string) (string, string) {
	v, ok := text(h, e.Type)
	switch {
	case (!ok || v == "") && e.EventType != "":
		return e.EventType, ""
	case !ok || v == "":
		return "", fmt.Sprintf("header %s is missing; it has to be the event's type", e.Type)
	}
	return v, name("header "+e.Type, v)
}

// name says what is wrong with a name: it is kept as text in many places, and shown.
func name(what, v string) string {
	switch {
	case !utf8.ValidString(v):
		return what + " is not UTF-8"
	case len(v) > MaxHeader:
		return fmt.Sprintf("%s has %d bytes, at most %d are read", what, len(v), MaxHeader)
	case strings.ContainsFunc(v, unicode.IsControl):
		return what + " has control characters"
	}
	return ""
}

func readKey(r *kgo.Record) (string, string) {
	if len(r.Key) == 0 {
		return "", "the record has no key; it has to be the aggregate's id"
	}
	key := string(r.Key)
	return key, name("the key", key)
}

// readVersion gives the place in the partition to records without a version.
func (e Envelope) readVersion(h map[string]string, r *kgo.Record, named bool) (int64, string) {
	v, ok := text(h, e.Version)
	if !ok && named {
		return 0, fmt.Sprintf("header %s is missing, and was named as the one of the version", e.Version)
	}
	if !ok {
		return r.Offset + 1, ""
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Sprintf("header %s is not a number: %d characters", e.Version, len(v))
	}
	return n, ""
}

func (e Envelope) readTime(h map[string]string) (time.Time, string) {
	v, ok := text(h, e.Time)
	if e.Time == "" || !ok {
		return time.Time{}, ""
	}
	at, ok := parseTime(v)
	if y := at.Year(); !ok || y < 1 || y > 9999 {
		return time.Time{}, fmt.Sprintf("header %s is neither RFC 3339 nor a number since 1970: %d characters", e.Time, len(v))
	}
	return at.UTC(), ""
}

// parseTime takes the forms in which a converter writes a time. The number of digits tells the unit: what is a date of this century in
// one is none in the next.
func parseTime(v string) (time.Time, bool) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		at, err := time.Parse(time.RFC3339Nano, v)
		return at, err == nil
	}
	switch digits := len(strings.TrimLeft(strings.TrimPrefix(v, "-"), "0")); {
	case digits <= 11:
		return time.Unix(n, 0), true
	case digits <= 14:
		return time.UnixMilli(n), true
	case digits <= 17:
		return time.UnixMicro(n), true
	}
	return time.Unix(0, n), true
}

// text gives a header as the text that was meant: a JSON converter writes it in quotes, or in an object with its schema, and a null as
// the word.
func text(h map[string]string, name string) (string, bool) {
	v, ok := h[name]
	switch {
	case !ok || v == "null":
		return "", false
	case strings.HasPrefix(v, `"`):
		return unquote(v), true
	case strings.HasPrefix(v, "{"):
		return unwrap(v)
	}
	return v, true
}

func unquote(v string) string {
	var plain string
	if len(v) > MaxHeader || json.Unmarshal([]byte(v), &plain) != nil {
		return v
	}
	return plain
}

func unwrap(v string) (string, bool) {
	var wrapped struct{ Schema, Payload json.RawMessage }
	if len(v) > MaxHeader || json.Unmarshal([]byte(v), &wrapped) != nil || wrapped.Schema == nil || wrapped.Payload == nil {
		return v, true
	}
	if payload := string(wrapped.Payload); payload != "null" {
		return unquote(payload), true
	}
	return "", false
}
