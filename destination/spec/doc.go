// Package spec reads destination files: one strict YAML file says which
// events a destination gets, how its call is built, how a call is undone and
// what happens when it does not go well.
//
// # Model
//
//	Spec
//	├── On, After            which events, after which other destinations
//	├── BaseURL, Auth        references (${env:NAME}, ${file:PATH}); see Resolve
//	├── Redact               fields that are sealed where kept, masked where shown
//	├── Routes[]             first match wins; a file without routes has one
//	│   ├── When             condition over the event or an earlier reply
//	│   ├── Call             method, URL, headers and body as templates
//	│   │   └── Answer       how replies are read: rules, conditions, expected fields
//	│   └── Revert           the call that undoes this route, or none
//	└── Timeout, Retry, ...  limits, all with documented defaults
//
// A placeholder is written in braces and names where its value comes from:
//
//	{event:$.orderId}              the event
//	{from:inventory:$.reservation} the reply of an earlier destination (implies after)
//	{request:$.amount}             the body that was sent      (revert only)
//	{response:$.id}                the reply that was received (revert only)
//	{transactionId}                a name listed under extract (revert only)
//	{eventId} {eventType} {aggregateId} {createdAt} {destination}
//
// A literal brace is written twice. Paths are RFC 9535 JSONPath; filters may
// compare with a string, true, false or null but not with numbers, because
// the JSONPath library compares numbers as binary floating point.
//
// # Invariants
//
//   - A Spec that Parse returned is complete: every placeholder is defined,
//     every path and operator is valid, every route can be reached, and every
//     route says how it is undone (revert: none counts).
//   - Nothing is guessed: unknown and repeated keys are errors.
//   - A Spec holds references to credentials, never credentials. Resolve reads
//     them at each use, and what it returns prints as "[redacted]".
//   - The reference of the format (docs/reference/destination-files.md) has
//     every key with its type, default and range; a test compares them.
//   - Numbers keep their digits; no number passes through a float.
//   - A Spec is immutable and safe for concurrent use.
//
// # Failure behaviour
//
// All problems of a file come back together as one *Problems, each with file,
// line, column, message and, where one is known, a suggestion. CheckSet adds
// what only shows over all files: unknown names and cycles. A reference that
// cannot be resolved is a *ResolveError that names the reference and the
// field, never the value.
package spec
