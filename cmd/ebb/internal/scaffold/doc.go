// Package scaffold writes the files of a new destination: a start that passes `ebb config check` as it is.
//
// # Invariants
//
//   - Nothing that exists is overwritten, and nothing is written unless all of it is right.
//   - What is written is checked together with the files beside it, by the rules of `ebb config check`.
//
// # Failure behaviour
//
// Errors name the file or the flag, and what to do. After an error of the file system, a file that was begun is removed.
package scaffold
