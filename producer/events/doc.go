// Package events joins the order service to the event contract of package
// schemas: it encodes the order's events and decodes the saga's outcomes.
//
// # Failure behaviour
//
// A registry that does not answer, and a contract that is not registered yet,
// become *order.UnavailableError: neither is the order's or the record's fault.
// A schema id that the registry does not have becomes outcome.ErrLater, since a
// replica of the registry may lag. Everything else is final.
//
// Encoding happens inside the order's transaction. Call schemas.Client.Warm
// before the service takes requests, so that it never waits for the registry.
package events
