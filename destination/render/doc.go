// Package render turns an event into the exact bytes of a call, and a
// successful call into the exact bytes of the call that undoes it. It sends
// nothing and reads no clock, no environment and no network: the same input
// gives the same bytes.
//
// # Outcomes
//
//	Do ──┬─ a route matches ──┬─ everything renders ──▶ Request
//	     │                    └─ a value is unfit ────▶ Park (names the placeholder)
//	     ├─ the single when is false ─────────────────▶ Skip
//	     └─ no route matches ── otherwise ────────────▶ Park | Skip | Refuse
//
//	Undo ─┬─ revert: none ────────────────────────────▶ None
//	      ├─ everything renders ──────────────────────▶ Request
//	      └─ a value is unfit ────────────────────────▶ Broken (names the placeholder)
//
// # Values
//
// A body text that is exactly one placeholder takes over the source's JSON
// value byte for byte: numbers keep their digits, objects their key order. A
// text with more around the placeholder stays text. Inserted values are never
// looked at again, so a brace in a value means nothing.
//
//	place        absent  null  blank text  object/array  control characters
//	body, whole  park    null  as it is    as it is      escaped
//	body, text   park    park  as it is    park          escaped
//	header       park    park  park        park          park
//	URL          park    park  park        park          park
//
// A path that selects several values parks everywhere. In a URL, a value is
// percent-encoded except for letters, digits, "-", ".", "_" and "~"; values
// with a "." or ".." segment park, also when the dots are percent-encoded.
//
// # Conditions
//
// A comparison needs a value of the like kind; unlike kinds match nothing, so
// that odd data falls through to otherwise. For a number in the file, a text
// that is exactly a JSON number counts as that number. Numbers compare by
// exact decimal value.
//
//	operator, file value   absent  null   text        number  true/false  object  array  several
//	exists                 false   true   true        true    true        true    true   true
//	eq   null              false   true   false       false   false       false   false  false
//	ne   null              false   false  true        true    true        true    true   false
//	eq   text              false   false  same        false   false       false   false  false
//	ne   text              false   false  differs     false   false       false   false  false
//	eq   true/false        false   false  false       false   same        false   false  false
//	ne   true/false        false   false  false       false   differs     false   false  false
//	eq   number            false   false  if numeric  exact   false       false   false  false
//	ne   number            false   false  if numeric  exact   false       false   false  false
//	gt gte lt lte number   false   false  if numeric  exact   false       false   false  false
//	contains text          false   false  substring   false   false       false   an element is eq  false
//	contains other         false   false  false       false   false       false   an element is eq  false
//
// all is true when every part is, any when one is, and not turns its part
// round: not (ne x) is therefore true for an absent value. An earlier
// destination that has no reply, or one that is not JSON, counts as absent.
// The first route that matches wins.
//
// # Invariants
//
//   - A rendered URL has the template's path prefix and number of segments.
//   - A rendered body is valid JSON.
//   - A Request holds no credential: the base address is kept as the file's
//     reference, and credentials are added at send.
//   - Reasons name placeholders and kinds, never values.
package render
