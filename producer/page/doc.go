// Package page is the order service's first page: HTML for people, at /.
//
//	GET  /                    orders, newest first, with live status
//	GET  /orders/new          the form of a new order
//	POST /orders              create it, then 303 to its page
//	GET  /orders/{id}         one order: sagas, steps, calls, waits and undo in order
//	GET  /orders/{id}/cancel  the question before a cancel
//	POST /orders/{id}/cancel  cancel, then 303 to the order's page
//	GET  /assets/…            one stylesheet, one script, one icon
//
// # Model
//
// The pages are rendered here and are complete without a script. The script only
// fetches the page that is shown again every two seconds and puts its live part
// in place; where scripts are off, the page reloads itself. Pages with a form do
// neither: what is being typed stays.
//
// The orders come from a Store, the sagas from a Journal that the caller wires
// in: the order service does not know the pipeline.
//
// # Invariants
//
//   - Every value is escaped for its place (html/template). No page needs
//     anything from another host, and the content security policy allows none, no
//     inline script and no inline style.
//   - A change is asked for by POST only, and refused if it comes from another
//     origin (http.CrossOriginProtection), so that no other site can create or
//     cancel in a visitor's name.
//   - A form that is sent twice creates one order: it carries an
//     Idempotency-Key of its own.
//   - Requests and replies of destinations are not shown, so that nothing in them
//     can be seen that their file wants masked; the key under which to ask is.
//
// # Failure behaviour
//
// Fields that are wrong are named all at once, beside the field, with what was
// typed kept. An order is shown without its sagas while the journal cannot be
// read. What the database cannot do now is a 503 that says whether the change may
// have been stored. Everything else is a 500 whose reason is in the log only.
package page
