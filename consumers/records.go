package consumers

import "github.com/ebbline/ebb/internal/intake"

// Records names the headers in which the topics' records carry what an event is, for outboxes that are not Ebb's. The zero value is the
// contract of package schemas. How values are written is the Decoder's matter.
type Records struct {
	// ID is the header of the event's id, a UUID. Empty: "id".
	ID string
	// Type is the header of the event's type. Empty: "eventType".
	Type string
	// EventType is the type of records without a type header, for topics of one type. Empty: such records become dead letters.
	EventType string
	// Version is the header of the aggregate's version. Empty: "aggregateVersion", and records without it are in the order of their
	// partition. One that is named here has to be there.
	Version string
	// Time is the header of the time at which the event was made: RFC 3339, or digits since 1970 in seconds, milliseconds, microseconds
	// or nanoseconds. Empty: the event's id tells if it is a UUIDv7, else the reading.
	Time string
	// TraceParent is the header of the trace context. Empty: "traceparent".
	TraceParent string
}

func (r Records) envelope() intake.Envelope { return intake.Envelope(r) }
