package schemas

import (
	"fmt"
	"strings"
)

// UnavailableError says that the schema registry did not give a proper answer:
// it is down, too slow, refuses our credentials, or something else answers in
// its place. It says nothing about the record: pause, and try again.
type UnavailableError struct {
	Op     string // what was asked for, for example "schema id 7"
	Status int    // HTTP status, 0 if there was no reply
	Err    error  // cause; carries neither credentials nor reply bodies
}

func (e *UnavailableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schema registry unavailable (%s)", e.Op)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": HTTP %d", e.Status)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	switch e.Status {
	case 401, 403:
		b.WriteString("; check the registry credentials")
	case 404:
		b.WriteString("; check the registry URL, its path included")
	case 0:
		b.WriteString("; check that the registry runs at the configured URL")
	}
	return b.String()
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// UnknownSchemaError says that the registry answered and has no schema with
// this id. A registry that lags may learn it, so try a few times; after that
// the record cannot be read.
type UnknownSchemaError struct {
	ID int
}

func (e *UnknownSchemaError) Error() string {
	return fmt.Sprintf("schema id %d is not in the registry; register it there, or check that this is the registry of the record's producer", e.ID)
}

// Reason classifies a DecodeError. Values are constant and safe to group by.
type Reason string

// Reasons of a DecodeError.
const (
	ReasonEmpty        Reason = "empty payload"
	ReasonTooLarge     Reason = "too large"
	ReasonFormat       Reason = "neither Avro wire format nor a JSON object"
	ReasonTruncated    Reason = "truncated"
	ReasonTrailing     Reason = "trailing bytes"
	ReasonInvalid      Reason = "invalid value"
	ReasonJSON         Reason = "invalid JSON"
	ReasonNotObject    Reason = "not an object"
	ReasonDuplicate    Reason = "a member of an object is there twice"
	ReasonSchema       Reason = "unusable schema"
	ReasonIncompatible Reason = "schema cannot be read as the expected type"
	ReasonPrecision    Reason = "digits would be lost"
)

// DecodeError says that a payload cannot be read and never will be. It holds
// no bytes of the payload.
type DecodeError struct {
	Reason   Reason
	SchemaID int    // 0 if unknown or plain JSON
	Path     string // field path, "" if it does not apply
	Offset   int    // byte offset in the payload, -1 if it does not apply
	Detail   string // more, without any value of the payload
}

func (e *DecodeError) Error() string {
	var b strings.Builder
	b.WriteString("cannot decode payload: ")
	b.WriteString(string(e.Reason))
	if e.SchemaID != 0 {
		fmt.Fprintf(&b, ", schema id %d", e.SchemaID)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, ", field %s", e.Path)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ", at byte %d", e.Offset)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// NotRegisteredError says that the schema of one of our types is not in the
// registry, so that nothing can be encoded yet.
type NotRegisteredError struct {
	Subject string
}

func (e *NotRegisteredError) Error() string {
	return fmt.Sprintf("subject %s does not have this program's schema; run `ebb schemas apply`", e.Subject)
}

// IncompatibleError says that a schema may not replace the ones before it.
type IncompatibleError struct {
	Subject string
	Version int // the version it conflicts with, 0 if the registry did not say
	Detail  string
}

func (e *IncompatibleError) Error() string {
	with := "an earlier version"
	if e.Version != 0 {
		with = fmt.Sprintf("version %d", e.Version)
	}
	return fmt.Sprintf("schema for subject %s is not compatible with %s: %s; give new fields a default and keep the old ones, or use a new event type", e.Subject, with, e.Detail)
}

// UnreleasedError says that a schema of this program is not the newest release of its subject.
type UnreleasedError struct {
	Subject string
	Version int // the version it would be
}

func (e *UnreleasedError) Error() string {
	return fmt.Sprintf("schema for subject %s is not released; if the change is meant, run `go generate ./schemas` and commit schemas/released/%s/v%d.avsc", e.Subject, e.Subject, e.Version)
}

// EncodeError says that a value cannot be written as its schema demands.
type EncodeError struct {
	Type   string // event type, or the Go type if it is not one of ours
	Detail string // begins with the path of the field, if one is to blame
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("cannot encode %s: %s", e.Type, e.Detail)
}
