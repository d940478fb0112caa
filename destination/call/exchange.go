package call

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

// errAttemptTimeout is the cause of a context that ran out of the attempt's
// own time, as opposed to the caller's.
var errAttemptTimeout = errors.New("attempt timed out")

// maxFreshConns bounds how often a connection that died while idle is
// replaced before anything was sent.
const maxFreshConns = 3

// exchange fills x and end. A failure is what Exchange.Err becomes.
func (s *Sender) exchange(ctx context.Context, a Attempt, x *Exchange, end *End) *Error {
	live, err := s.cfg.Resolve()
	if err != nil {
		end.Setup = true
		return setupError(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, errAttemptTimeout)
	defer cancel()
	as, failure, setup := s.credential(ctx, live)
	if failure != nil {
		end.Setup = setup
		return failure
	}
	transport, failure := s.transports.with(live.Certificates())
	if failure != nil {
		end.Setup = true
		return failure
	}
	request, failure := s.build(a, live, as)
	if failure != nil {
		end.Setup = true
		return failure
	}
	host := request.URL.Host
	reply, sent, err := roundTrip(ctx, transport, request, a)
	end.Sent = sent
	if err != nil {
		kind, cause := diagnose(ctx, err)
		end.Setup = kind == KindUntrusted || kind == KindAddress || kind == KindRejected
		// A handshake that the other side ends was not followed by reading a
		// request, although TLS 1.3 lets us write one before we know.
		end.Sent = sent && kind != KindRejected
		return failed(kind, host, cause)
	}
	failure = s.receive(ctx, reply, newScrubber(append(live.Secrets(), as.secrets...)), x, end)
	if failure != nil {
		failure.Host = host
	}
	if end.Status == http.StatusUnauthorized && as.token != "" {
		s.tokens.drop(as.token)
	}
	return failure
}

// identity is how one attempt proves who calls.
type identity struct {
	header, value string
	token         string // set for an access token
	secrets       []string
}

func (s *Sender) credential(ctx context.Context, live spec.Live) (as identity, failure *Error, setup bool) {
	if header, value, ok := live.Credential(); ok {
		return identity{header: header, value: value}, nil, false
	}
	c := live.OAuth2()
	if c == nil {
		return identity{}, nil, false
	}
	token, failure, setup := s.tokens.get(ctx, c)
	if failure != nil {
		return identity{}, failure, setup
	}
	return identity{header: "Authorization", value: "Bearer " + token, token: token, secrets: []string{token}}, nil, false
}

// failed is the error of a round trip. What the guard says is our own text.
func failed(kind Kind, host string, cause error) *Error {
	var refused *refusedAddress
	if errors.As(cause, &refused) {
		return &Error{Kind: kind, Host: host, Detail: refused.Error()}
	}
	return &Error{Kind: kind, Host: host, cause: cause}
}

func setupError(err error) *Error {
	var reference *spec.ResolveError
	if errors.As(err, &reference) {
		return &Error{Kind: KindSetup, Detail: reference.Error(), cause: reference}
	}
	return &Error{Kind: KindSetup, Detail: "address and credentials cannot be resolved"}
}

// roundTrip sends the request on one connection and reports whether any byte
// of it has left. A connection that was dead already, before a byte left, is
// replaced.
func roundTrip(ctx context.Context, transport *http.Transport, request *http.Request, a Attempt) (*http.Response, bool, error) {
	for try := 1; ; try++ {
		g := &gate{deadline: a.Deadline, before: a.Before}
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			g.reused.Store(info.Reused)
			if conn := counting(info.Conn); conn != nil {
				conn.gate.Store(g)
			} else {
				g.assumeSent()
			}
		}}
		reply, err := transport.RoundTrip(clone(request, a).WithContext(httptrace.WithClientTrace(ctx, trace)))
		if err == nil {
			return reply, true, nil
		}
		sent, refusal := g.seal()
		if refusal != nil {
			err = refusal
		}
		if sent || !g.reused.Load() || try == maxFreshConns || ctx.Err() != nil || gateClosed(err) {
			return nil, sent, err
		}
	}
}

func gateClosed(err error) bool {
	var held *heldBack
	return errors.Is(err, errDeadline) || errors.As(err, &held)
}

// build makes the request without its body. It compares the resolved target
// with the base address once more: nothing in a path may change the host.
func (s *Sender) build(a Attempt, live spec.Live, as identity) (*http.Request, *Error) {
	base := live.BaseURL()
	switch {
	case base == nil:
		return nil, &Error{Kind: KindSetup, Detail: "base address is not resolved"}
	case a.Key == "" || !printable(a.Key):
		return nil, &Error{Kind: KindSetup, Host: base.Host, Detail: "the idempotency key is empty or not printable"}
	case !a.Deadline.IsZero() && !monotonic(a.Deadline):
		return nil, &Error{Kind: KindSetup, Host: base.Host, Detail: "the deadline has no monotonic reading; take it from time.Now"}
	}
	prefix := strings.TrimSuffix(base.EscapedPath(), "/")
	target, err := url.Parse(base.Scheme + "://" + base.Host + prefix + a.Request.URL)
	if err != nil || target.Scheme != base.Scheme || target.Host != base.Host || target.User != nil || target.Fragment != "" ||
		!strings.HasPrefix(a.Request.URL, "/") || !strings.HasPrefix(target.EscapedPath(), prefix+"/") {
		return nil, &Error{Kind: KindSetup, Host: base.Host, Detail: "the stored URL does not stay below base_url"}
	}
	header := http.Header{"User-Agent": {"ebb"}}
	for _, h := range a.Request.Header {
		header[wireName(h.Name)] = []string{h.Value}
	}
	if as.header != "" {
		header[wireName(as.header)] = []string{as.value}
	}
	header[keyHeader] = []string{a.Key}
	return &http.Request{
		Method: a.Request.Method, URL: target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// monotonic reports whether t carries a monotonic reading. Round(0) strips it,
// and == sees the difference that Equal does not.
func monotonic(t time.Time) bool {
	return t != t.Round(0) // Equal would compare the instants only
}

// keyHeader is Idempotency-Key in a form that net/http does not know: in the
// canonical form it would make the transport repeat requests by itself.
const keyHeader = "idempotency-key"

func wireName(name string) string {
	switch canonical := http.CanonicalHeaderKey(name); canonical {
	case "Idempotency-Key", "X-Idempotency-Key":
		return strings.ToLower(name)
	default:
		return canonical
	}
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// clone gives the request a fresh body that the transport cannot rewind.
func clone(request *http.Request, a Attempt) *http.Request {
	r := *request
	r.Header = request.Header.Clone()
	switch {
	case len(a.Request.Body) > 0:
		r.Body = io.NopCloser(bytes.NewReader(a.Request.Body))
		r.ContentLength = int64(len(a.Request.Body))
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		// With no body at all, the transport would count these as repeatable.
		// It finds this one empty and sends neither length nor chunks.
		r.Body = io.NopCloser(strings.NewReader(""))
	}
	return &r
}

// receive reads the reply to its end.
func (s *Sender) receive(ctx context.Context, reply *http.Response, clean scrubber, x *Exchange, end *End) *Error {
	defer func() { _ = reply.Body.Close() }()
	end.Status = reply.StatusCode
	x.Header = Mask(reply.Header)
	clean.header(x.Header)
	if reply.StatusCode == http.StatusSwitchingProtocols {
		return &Error{Kind: KindUnreadable}
	}
	body, err := io.ReadAll(io.LimitReader(reply.Body, MaxBody+1))
	x.Body = clean.bytes(body)
	if err != nil {
		x.Cut = true
		kind, cause := diagnose(ctx, err)
		if kind == KindCut && !errors.Is(err, io.ErrUnexpectedEOF) {
			kind = KindUnreadable
		}
		return &Error{Kind: kind, cause: cause}
	}
	if len(body) <= MaxBody {
		end.Complete = true
		if s.reads(end) {
			end.Reply = render.ParseReply(body)
		}
		s.wish(reply.Header, end, x)
		return nil
	}
	x.Cut, x.Body = true, x.Body[:min(len(x.Body), MaxBody)]
	// A status other than success says all that matters without its body. A
	// success whose reply does not fit cannot be undone from it.
	end.Complete = reply.StatusCode < 200 || reply.StatusCode > 299
	s.wish(reply.Header, end, x)
	return &Error{Kind: KindTooLarge}
}

// reads tells whether anything will be asked of the reply's body: most
// replies are judged by their status alone.
func (s *Sender) reads(end *End) bool {
	a := end.Answer
	success := end.Status >= 200 && end.Status <= 299
	return len(a.Classify) > 0 || success && (a.SuccessWhen != nil || a.FailureWhen != nil || a.PendingWhen != nil) ||
		!success && !s.cfg.RetryAfter.Body.IsZero()
}

func (s *Sender) wish(h http.Header, end *End, x *Exchange) {
	if end.Status >= 200 && end.Status <= 299 && len(end.Answer.Classify) == 0 {
		return // done, or judged by its body; it does not ask to wait
	}
	w := readWish(h, end.Reply, s.cfg.RetryAfter, time.Now())
	end.RetryAfter, x.RetryAfter = w.asked, w.bounded(s.cfg.RetryAfter)
}
