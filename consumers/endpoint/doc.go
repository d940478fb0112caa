// Package endpoint makes a destination file an endpoint of package consumers: it renders by the version that a step is pinned to, and
// calls with the address, credentials and limits of the newest.
//
// # What is pinned and what is live
//
//	pinned to the step     request, routes, conditions, revert, how replies are read    (the version's file, stored in ebb.destinations)
//	live at every attempt  base address, credentials, timeout, Retry-After limits, networks that may be called
//	both                   what is redacted: what is secret now was secret then
//
// The version's file is read before the call is made: how its reply is read, and how it is undone, must be known when it comes.
//
// A rendered request is stored as JSON with its body in base64; the same bytes are read back for every attempt (G4) and for the undo
// (G6). Where a file redacts something in it, the stored fields are a masked view, and the request itself lies sealed beside it, bound
// to its step (G13). Replies are masked after the undo was rendered from them, and before anybody else sees them.
//
// # Failure behaviour
//
// A file that cannot be had from the journal gives the claim back; one that this release cannot read parks the step. A sealed request
// whose key is missing is MISCONFIGURED: nothing is sent and no attempt is charged until the key is there. An undo that cannot be built
// is pinned as broken with the reason beside the exchange.
package endpoint
