package schemas

import (
	"context"
	"encoding/binary"
	"errors"
	"reflect"
	"sync"

	twmb "github.com/twmb/avro"
)

// Limits of a Codec.
const (
	MaxPayload = 1 << 20 // largest payload to encode or decode, bytes
	MaxJSON    = 8 << 20 // largest JSON made from one payload, bytes
)

// Codec turns event values into Kafka payloads and back. It is safe for
// concurrent use.
type Codec struct {
	client   *Client
	resolved sync.Map // resolvedKey -> *twmb.Schema
}

type resolvedKey struct {
	id int
	m  *message
}

// NewCodec returns a codec that finds schemas through client.
func NewCodec(client *Client) *Codec { return &Codec{client: client} }

// Decoded is a payload as JSON.
type Decoded struct {
	SchemaID int    // id of the writer's schema, 0 for a plain JSON payload
	Name     string // full name of the writer's record, "" for plain JSON
	JSON     []byte // one JSON object; plain JSON is the payload itself, not a copy
}

// Decode turns a payload into one JSON object, with the writer's schema. The
// package comment says how values are written; fields keep the order of the
// schema, map keys are sorted. Errors are [UnavailableError],
// [UnknownSchemaError] and [DecodeError].
//
// A null payload is no event; callers skip it before they decode.
func (c *Codec) Decode(ctx context.Context, payload []byte) (Decoded, error) {
	if err := checkSize(payload); err != nil {
		return Decoded{}, err
	}
	if payload[0] != 0 {
		if err := checkJSONObject(payload); err != nil {
			return Decoded{}, err
		}
		return Decoded{JSON: payload}, nil
	}
	w, body, err := c.writerOf(ctx, payload)
	if err != nil {
		return Decoded{}, err
	}
	if w.root.kind != "record" {
		return Decoded{}, &DecodeError{Reason: ReasonNotObject, SchemaID: w.id, Offset: -1, Detail: "the schema is " + w.root.kind + ", not a record"}
	}
	var v any
	if err := decodeBody(w.id, w.schema, body, &v, twmb.TaggedUnions()); err != nil {
		return Decoded{}, err
	}
	out, failure := appendRecordJSON(make([]byte, 0, 2*len(body)+32*len(w.root.fields)), w.root, v)
	if failure != nil {
		failure.SchemaID = w.id
		return Decoded{}, failure
	}
	return Decoded{SchemaID: w.id, Name: w.root.name, JSON: out}, nil
}

// DecodeInto decodes an Avro payload into T, one of the generated event types.
// The writer's schema is resolved against the schema of T, so that versions
// may differ. A payload of another type is a [DecodeError].
func DecodeInto[T any](ctx context.Context, c *Codec, payload []byte) (T, error) {
	var v T
	m := contract().byType[reflect.TypeFor[T]()]
	if m == nil {
		return v, &EncodeError{Type: reflect.TypeFor[T]().String(), Detail: "it is not one of the event types of this package"}
	}
	w, body, err := c.writerOf(ctx, payload)
	if err != nil {
		return v, err
	}
	if err := c.decodeAs(w, m, body, &v); err != nil {
		return *new(T), err
	}
	return v, nil
}

// DecodeMessage decodes an Avro payload into the event type that its schema
// names and returns a pointer to it, for example *SagaParked. See
// [AsSagaEvent] and [AsStepEvent]. A record type that is not ours is a
// [DecodeError] with [ReasonIncompatible].
func (c *Codec) DecodeMessage(ctx context.Context, payload []byte) (any, error) {
	w, body, err := c.writerOf(ctx, payload)
	if err != nil {
		return nil, err
	}
	m := contract().byName[w.root.name]
	if m == nil {
		return nil, &DecodeError{Reason: ReasonIncompatible, SchemaID: w.id, Offset: -1, Detail: "the writer's record type is not known here"}
	}
	v := reflect.New(m.goType).Interface()
	if err := c.decodeAs(w, m, body, v); err != nil {
		return nil, err
	}
	return v, nil
}

func (c *Codec) decodeAs(w *writer, m *message, body []byte, into any) error {
	key := resolvedKey{w.id, m}
	schema, ok := c.resolved.Load(key)
	if !ok {
		resolved, err := twmb.Resolve(w.schema, m.reader)
		if err != nil {
			return &DecodeError{Reason: ReasonIncompatible, SchemaID: w.id, Offset: -1, Detail: schemaDetail(err)}
		}
		if err := sameMeaning(m, w); err != nil {
			return &DecodeError{Reason: ReasonIncompatible, SchemaID: w.id, Offset: -1, Detail: err.Error()}
		}
		schema, _ = c.resolved.LoadOrStore(key, resolved)
	}
	return decodeBody(w.id, schema.(*twmb.Schema), body, into)
}

// sameMeaning refuses a writer whose values would be read as something else, for example milliseconds as microseconds: resolving
// does not look at that.
func sameMeaning(m *message, w *writer) error {
	reader, err := compile(m.reader.Root())
	if err != nil {
		return err
	}
	return (&meaning{seen: map[[2]*node]bool{}}).same(reader, w.root, reader.name)
}

// writerOf splits an Avro payload and finds its schema.
func (c *Codec) writerOf(ctx context.Context, payload []byte) (*writer, []byte, error) {
	if err := checkSize(payload); err != nil {
		return nil, nil, err
	}
	if payload[0] != 0 {
		return nil, nil, notAvro()
	}
	if len(payload) < headerLen {
		return nil, nil, &DecodeError{Reason: ReasonTruncated, Offset: len(payload), Detail: "the schema id takes 4 bytes"}
	}
	id := binary.BigEndian.Uint32(payload[1:headerLen])
	if id == 0 || id > 1<<31-1 {
		return nil, nil, &DecodeError{Reason: ReasonFormat, Offset: 1, Detail: "schema ids are between 1 and 2147483647"}
	}
	w, err := c.client.writerByID(ctx, int(id))
	if err != nil {
		return nil, nil, err
	}
	return w, payload[headerLen:], nil
}

func checkSize(payload []byte) error {
	if len(payload) == 0 {
		return &DecodeError{Reason: ReasonEmpty, Offset: -1}
	}
	if len(payload) > MaxPayload {
		return &DecodeError{Reason: ReasonTooLarge, Offset: -1, Detail: "a payload may have 1048576 bytes"}
	}
	return nil
}

// decodeBody decodes all of body. The decoder's messages quote values, so only
// their kind and place are kept.
func decodeBody(id int, schema *twmb.Schema, body []byte, into any, opts ...twmb.Opt) error {
	rest, err := schema.Decode(body, into, opts...)
	if err == nil {
		if len(rest) > 0 {
			return &DecodeError{Reason: ReasonTrailing, SchemaID: id, Offset: headerLen + len(body) - len(rest)}
		}
		return nil
	}
	d := &DecodeError{Reason: ReasonInvalid, SchemaID: id, Offset: -1}
	if semantic, ok := errors.AsType[*twmb.SemanticError](err); ok {
		d.Path = semantic.Field
		if semantic.AvroType != "" {
			d.Detail = "expected Avro " + semantic.AvroType
		}
	}
	if short, ok := errors.AsType[*twmb.ShortBufferError](err); ok {
		d.Reason = ReasonTruncated
		d.Detail = "while reading " + short.Type
	}
	return d
}
