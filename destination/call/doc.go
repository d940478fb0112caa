// Package call makes one attempt of a step: at most one HTTP request on the
// wire, and an exact account of how it ended.
//
// # Model
//
//	Attempt ──▶ Sender.Send ──▶ Exchange{Sent, Status, Header, Body, Class, ...}
//	                │
//	                ├─ resolve base address, credentials and certificate (each time)
//	                ├─ get an access token, where the file says oauth2 and none is held
//	                ├─ connect, or take an idle connection
//	                ├─ gate: deadline and Before, right before the first byte
//	                ├─ write the request, read the reply to its end
//	                └─ Classify: the file's rules, then what a 2xx needs, then the status
//
// # Invariants
//
//   - One attempt is at most one request on the wire (G4). net/http repeats
//     requests on its own when a reused connection dies; here it cannot: a
//     body has no GetBody, a bodiless GET or HEAD gets an opaque empty body,
//     and the Idempotency-Key is kept under a map key that the transport does
//     not take for one (it travels as "idempotency-key"; names of header
//     fields have no case). Only when not one byte has left does Send itself
//     take a fresh connection.
//   - NOT_SENT means that no byte of the request reached the socket. The
//     connection counts the bytes; nothing is concluded from error texts. One
//     exception: a handshake that the other side ends over our certificate is
//     MISCONFIGURED without a maybe. TLS 1.3 lets the request follow before
//     the refusal is known, but it was not read.
//   - Without an access token nothing is sent. A token endpoint that is out
//     is NOT_SENT, one that refuses us is MISCONFIGURED.
//   - What a file redacts is hidden by a Redactor in what is stored or shown,
//     wherever it turns up; what is sent stays exact.
//   - No byte leaves at or after Attempt.Deadline on the monotonic clock (G3).
//   - A connection goes only to base_url's host and port, and never to a
//     link-local, multicast, unspecified or metadata address; to loopback and
//     private networks only if base_url is written as such an address or
//     EBB_ALLOW_PRIVATE allows it. The connected address is what is checked,
//     after name resolution, for each connection.
//   - Redirects are not followed, and no proxy is taken from the environment.
//   - Credentials are added at send and never part of an Exchange: sensitive
//     reply headers are masked, and a reply that echoes a credential is
//     cleaned (G13).
//
// # Failure behaviour
//
// Send returns an Exchange, never a bare error. Exchange.Err, when set, is an
// *Error with a fixed text per kind and the host; it repeats no URL, header,
// body or text from the other side.
package call
