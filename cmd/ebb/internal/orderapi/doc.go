// Package orderapi is a client of the order service's HTTP API, for commands.
//
// # Invariants
//
//   - An amount is kept digit for digit, from the command line to the wire and back: [Money] is text, never a float.
//   - A call that changes something carries an Idempotency-Key, so that repeating it after a lost answer changes nothing twice.
//
// # Failure behaviour
//
// An answer that is not a success is an *[Error] with every bad field; no answer is an *[UnreachableError], which says whether the
// call may have been stored. Nothing is repeated here.
package orderapi
