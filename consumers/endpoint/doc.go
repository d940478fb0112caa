// Package endpoint makes a destination file an endpoint of package consumers: it renders by the version that a step is pinned to, and
// calls with the address, credentials and limits of the newest.
//
// # What is pinned and what is live
//
//	pinned to the step     request, routes, conditions, revert    (the version's file, stored in ebb.destinations)
//	live at every attempt  base address, credentials, timeout, Retry-After limits
//
// A rendered request is stored as JSON with its body in base64; the same bytes are read back for every attempt (G4) and for the undo
// (G6).
package endpoint
