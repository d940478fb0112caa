package call

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"reflect"
)

// Kind says at which point an attempt failed.
type Kind string

// The kinds. The text after each is what Error says.
const (
	KindSetup      Kind = "setup"       // reference, address or request is unusable
	KindDeadline   Kind = "deadline"    // too late to send the first byte
	KindHeldBack   Kind = "held back"   // Before refused
	KindCanceled   Kind = "canceled"    // the caller's context ended
	KindDNS        Kind = "dns"         // the host's name does not resolve
	KindConnect    Kind = "connect"     // no connection
	KindTLS        Kind = "tls"         // handshake failed
	KindUntrusted  Kind = "certificate" // the certificate is not trusted
	KindTimeout    Kind = "timeout"     // no complete reply in time
	KindCut        Kind = "cut"         // the connection ended in between
	KindTooLarge   Kind = "too large"   // the reply exceeds MaxBody
	KindUnreadable Kind = "unreadable"  // the reply is not what its header declares
	KindToken      Kind = "token"       // no access token
	KindRejected   Kind = "rejected"    // our own certificate is not accepted
	KindAddress    Kind = "address"     // the host resolves to an address that may not be called
)

var kindTexts = map[Kind]string{
	KindDeadline:   "deadline passed before the first byte; nothing was sent",
	KindHeldBack:   "held back before the first byte",
	KindCanceled:   "canceled",
	KindDNS:        "host name does not resolve; check base_url and DNS",
	KindConnect:    "no connection; check that the destination is up and base_url is right",
	KindTLS:        "TLS handshake failed",
	KindUntrusted:  "certificate is not trusted; check base_url and the trusted roots",
	KindTimeout:    "no complete reply within the timeout",
	KindCut:        "connection was cut, or the reply is not HTTP",
	KindTooLarge:   "reply is larger than 1 MiB",
	KindUnreadable: "reply is not readable",
	KindToken:      "the token endpoint gives no access token; check auth.oauth2",
	KindRejected:   "the destination does not accept our certificate; check auth.mtls",
	KindAddress:    "address is not allowed",
}

// Error says why an attempt has no complete reply. Its text holds the
// destination, the host and a fixed reason; no URL, header or body.
type Error struct {
	Kind        Kind
	Destination string
	// Host is host and port; "" when the address could not be resolved.
	Host string
	// Detail is set by this package only, from its own words.
	Detail string
	// Token is true when the host is that of the token endpoint, which was
	// asked before the destination.
	Token bool

	cause error // only errors whose text is harmless
}

func (e *Error) Error() string {
	text := "call " + e.Destination
	if e.Host != "" {
		text += " at " + e.Host
	}
	text += ": "
	if e.Token && e.Kind != KindToken {
		text += "no access token: "
	}
	if known := kindTexts[e.Kind]; known != "" {
		text += known
		if e.Detail != "" {
			text += ": "
		}
	}
	return text + e.Detail
}

// Unwrap gives context errors, what Before returned, and resolve errors. It
// hides errors of the network and of net/http: their texts repeat URLs and
// bytes from the other side.
func (e *Error) Unwrap() error { return e.cause }

// errDeadline and heldBack travel from the connection's gate through net/http.
var errDeadline = errors.New("deadline passed")

type heldBack struct{ cause error }

func (e *heldBack) Error() string { return "held back" }

// diagnose finds the kind of a failed round trip. One branch per reason.
func diagnose(ctx context.Context, err error) (Kind, error) {
	var (
		held        *heldBack
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		hostname    x509.HostnameError
		invalid     x509.CertificateInvalidError
		header      tls.RecordHeaderError
		operation   *net.OpError
		network     net.Error
		address     *refusedAddress
	)
	switch {
	case errors.As(err, &held):
		return KindHeldBack, held.cause
	case errors.Is(err, errDeadline):
		return KindDeadline, nil
	case errors.As(err, &address):
		return KindAddress, address
	case errors.Is(context.Cause(ctx), errAttemptTimeout):
		return KindTimeout, context.DeadlineExceeded
	case errors.Is(ctx.Err(), context.Canceled):
		return KindCanceled, context.Canceled
	case ctx.Err() != nil:
		return KindTimeout, context.DeadlineExceeded
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return KindUntrusted, nil
	case errors.As(err, &operation) && operation.Op == "remote error" && rejectsCertificate(operation.Err):
		return KindRejected, nil
	case errors.As(err, &header),
		errors.As(err, &operation) && (operation.Op == "remote error" || operation.Op == "local error"):
		// crypto/tls reports alerts of both sides as such operations.
		return KindTLS, nil
	case errors.As(err, &dns):
		return KindDNS, nil
	case errors.As(err, &operation) && operation.Op == "dial":
		return KindConnect, nil
	case errors.As(err, &network) && network.Timeout():
		return KindTimeout, context.DeadlineExceeded
	}
	return KindCut, nil
}

// rejectsCertificate knows the alerts by which a server refuses a client's
// certificate. crypto/tls keeps their type to itself; the number is the
// standard's.
func rejectsCertificate(alert error) bool {
	v := reflect.ValueOf(alert)
	if v.Kind() != reflect.Uint8 {
		return false
	}
	switch v.Uint() {
	case 42, 43, 44, 45, 46, 48, 116: // bad, unsupported, revoked, expired, unknown, unknown authority, required
		return true
	}
	return false
}
