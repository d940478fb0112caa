// Package schemas is the contract between the parts of Ebb: the Avro schemas
// of every event, the Go types generated from them, the names of topics,
// headers and subjects, and the way from a value to Kafka bytes and back.
// No other package knows Avro.
//
// # Model
//
//	value ──Codec.Encode──▶ 0x00 | schema id (4 bytes, big endian) | Avro body
//	                                     │
//	                    Client: id ⇄ schema, cached, from the registry
//	                                     ▼
//	JSON  ◀──Codec.Decode──  the writer's schema decodes the body
//	type  ◀──DecodeInto[T]─  the same, resolved against the schema of T
//
// A payload whose first character is '{' is plain JSON: it is validated and
// handed on byte for byte. A topic of a foreign outbox can be told to be JSON
// or Avro only ([Format]).
//
// Each event type has a subject of its own, named by topic and record
// (see [Subject]), because one topic carries several event types. Schemas may
// only change so that every version can read every other ([Compatible]) and
// nothing is lost or read as something else ([Evolves]); the released versions
// are kept in released/, and a schema that is not released fails the check
// ([CheckReleased]).
//
// # Exactness
//
// No number passes through a float that was not one in the schema. A long
// becomes its digits, a decimal a JSON number with exactly the fraction digits
// of its schema, or of the currency if the event names one: 12.30 in USD, 1230
// in JPY, 1.230 in KWD. An amount with more digits than its currency has is
// refused, never rounded. A decimal that is no amount opts out with the
// property "ebb.money": false in its schema. Timestamps become RFC 3339 text
// in UTC with six fraction digits, bytes become base64, uuids lower-case text.
//
// # Failure
//
// What went wrong decides what the reader may do, so the error types are
// disjoint:
//
//   - [UnavailableError]: the registry did not answer properly. Pause and try
//     again; the record is not to blame.
//   - [UnknownSchemaError]: the registry answered and does not know the id.
//     Try a few times (a registry may lag), then put the record aside.
//   - [DecodeError]: the bytes are wrong and will stay wrong. It says what and
//     where, and never quotes the payload.
//   - [NotRegisteredError], [IncompatibleError]: set-up is missing or refused.
//
// A client that keeps a file ([ClientConfig.KnownFile]) starts without the
// registry on what an earlier run was told.
//
// A cancelled context is returned as such and is none of these.
//
// # Limits
//
// Payloads are limited to [MaxPayload], the JSON made from one to [MaxJSON],
// replies of the registry to 4 MiB. Hostile block counts and nesting are
// refused by the decoder before it allocates. Plain JSON is nested at most
// [MaxDepth] deep and has no number that would be too long to write out; a
// member that is there twice is refused, since readers differ in which they
// take.
package schemas

//go:generate go run github.com/hamba/avro/v2/cmd/avrogen@v2.31.0 -pkg schemas -strict-types -o types_gen.go avsc/CompensationRequested.avsc avsc/DeadLettered.avsc avsc/OrderCancelled.avsc avsc/OrderCreated.avsc avsc/OrderStatusUpdated.avsc avsc/SagaCompensated.avsc avsc/SagaCompleted.avsc avsc/SagaParked.avsc avsc/SagaResumed.avsc avsc/StepFailed.avsc avsc/StepSucceeded.avsc avsc/StepUndone.avsc
//go:generate go run ./internal/release
