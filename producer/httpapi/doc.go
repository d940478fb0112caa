// Package httpapi is the order service's JSON API over HTTP.
//
//	POST   /api/orders               create                       201, Location
//	GET    /api/orders               newest first, by pages       200
//	GET    /api/orders/{id}          one order with its sagas     200
//	DELETE /api/orders/{id}          hide an order that has ended 204
//	PUT    /api/orders/{id}/status   ship or deliver              200
//	POST   /api/orders/{id}/cancel   cancel; DELETE does the same 200
//
// # Requests
//
// A body is one JSON object in UTF-8 of at most 10 MiB with the content type
// application/json. Names match exactly; unknown and repeated ones are refused.
// A list is read page by page from the newest order on: "next" and the Link
// header lead to the page of older orders, by keyset, so that new orders shift
// nothing.
// totalAmount is a JSON number or the same digits as a string; it is never
// rounded and never passes through a float.
//
// Idempotency-Key (1 to 255 visible ASCII characters) makes a call repeatable:
// the same key with the same method, path and body gives the first answer byte
// for byte, with the header Idempotency-Replayed: true. A refused call leaves its
// key free. A well-formed traceparent header goes on to the event; a malformed
// one is ignored, as W3C Trace Context asks for.
//
// # Errors
//
// Every error is application/problem+json (RFC 9457), and lists every bad field
// in "errors" (at most 50), so that a client needs one round. "instance" names
// the occurrence, and is in the log where the fault is ours:
//
//	400 malformed or invalid    409 the status forbids it
//	403 a page of elsewhere     415 content type
//	404 no such order           413 body too large
//	405 method                  422 key of another call
//	500 our fault, see the log  503 database, with Retry-After
//
// After a 503 whose detail says that the change may have been stored, a
// repetition with the same Idempotency-Key finds out.
package httpapi
