package call

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

// MaxBody is the largest reply that is kept, in bytes after decompression.
const MaxBody = 1 << 20

const (
	maxHeader      = 64 << 10
	idleTimeout    = 20 * time.Second // below what servers usually allow, so that an idle connection is rarely a dead one
	connectTimeout = 10 * time.Second
)

// Config describes a Sender.
type Config struct {
	// Destination is the name for errors and logs. Required.
	Destination string
	// Resolve gives the address and credentials. It is asked for each
	// attempt, so that a rotated credential takes effect at once. Required.
	Resolve func() (spec.Live, error)
	// Timeout covers one attempt from the call of Send to the last byte of
	// the reply. 0 means spec.DefaultTimeout.
	Timeout time.Duration
	// Concurrency is the number of idle connections to keep. 0 means
	// spec.DefaultConcurrency.
	Concurrency int
	// RetryAfter says how the destination's wish to wait is read. The zero
	// value means the header Retry-After, capped at spec.DefaultRetryAfterCap.
	RetryAfter spec.RetryAfter
	// TLS is used for https addresses; nil means the system's roots.
	TLS *tls.Config
	// AllowPrivate are loopback and private networks that may be connected to
	// although base_url has a host name; see ParseAllowPrivate. nil means none.
	AllowPrivate []netip.Prefix
	// Resolver finds the addresses of host names; nil means the system's.
	Resolver *net.Resolver
	// Logger gets one debug record per attempt. nil means none.
	Logger *slog.Logger
}

// FromSpec fills a Config from a destination file.
func FromSpec(s *spec.Spec, lookup spec.Lookup) Config {
	rules := s.Rules()
	return Config{
		Destination: s.Name,
		Resolve:     func() (spec.Live, error) { return s.Resolve(lookup) },
		Timeout:     rules.Timeout,
		Concurrency: rules.Concurrency,
		RetryAfter:  rules.RetryAfter,
	}
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = spec.DefaultTimeout
	}
	if c.Concurrency == 0 {
		c.Concurrency = spec.DefaultConcurrency
	}
	if c.RetryAfter.Header == "" {
		c.RetryAfter.Header = spec.DefaultRetryAfterHeader
	}
	if c.RetryAfter.Format == "" {
		c.RetryAfter.Format = spec.WaitAuto
	}
	if c.RetryAfter.Cap == 0 {
		c.RetryAfter.Cap = spec.DefaultRetryAfterCap
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	if c.Destination == "" {
		problems = append(problems, errors.New("call: Config.Destination is empty"))
	}
	if c.Resolve == nil {
		problems = append(problems, errors.New("call: Config.Resolve is nil"))
	}
	if c.Timeout < 0 {
		problems = append(problems, fmt.Errorf("call: Config.Timeout is %s, below 0", c.Timeout))
	}
	if c.Concurrency < 0 {
		problems = append(problems, fmt.Errorf("call: Config.Concurrency is %d, below 0", c.Concurrency))
	}
	if c.RetryAfter.Fallback < 0 || c.RetryAfter.Cap < 0 {
		problems = append(problems, errors.New("call: Config.RetryAfter has a negative duration"))
	}
	return errors.Join(problems...)
}

// Sender calls one destination and reuses its connections. It is safe for
// concurrent use. Close it to let the idle connections go.
type Sender struct {
	cfg        Config
	transports *transports
	tokens     *tokens
}

// NewSender returns a Sender, or an error that joins all problems of cfg.
func NewSender(cfg Config) (*Sender, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Sender{cfg: cfg, transports: newTransports(cfg)}
	// The token endpoint is another host: it is not shown our certificate.
	plain := newTransports(cfg)
	s.tokens = &tokens{transport: plain.current, timeout: min(connectTimeout, cfg.Timeout)}
	return s, nil
}

// Close lets idle connections go. Calls in flight go on.
func (s *Sender) Close() {
	s.transports.closeIdle()
	s.tokens.transport.CloseIdleConnections()
}

// Attempt is one attempt of a step.
type Attempt struct {
	Request render.Request
	// Key is the Idempotency-Key, for example "<event id>:billing:do".
	// Required.
	Key       string
	Direction Direction
	// Deadline is the moment from which no first byte may leave. It must have
	// a monotonic reading, so take it from time.Now before the claim. With a
	// lease of timeout and margin, a Deadline of claim plus margin keeps the
	// whole exchange within the lease. Zero means none.
	Deadline time.Time
	// Before is asked right before the first byte; an error holds the request
	// back. It must be quick. nil allows.
	Before func() error
	// MayHaveHappened is true when an earlier attempt may have done the work.
	MayHaveHappened bool
	// Answer is how the destination's file reads the reply.
	Answer spec.Answer
}

// Exchange is how an attempt ended. It holds no credential.
type Exchange struct {
	// Sent is true when any byte of the request reached the socket.
	Sent bool
	// Status is 0 when there is no reply.
	Status int
	// Header is the reply's, with sensitive values masked.
	Header http.Header
	// Body is the reply's, decompressed, at most MaxBody bytes.
	Body []byte
	// Cut is true when Body is not the whole reply.
	Cut   bool
	Class Class
	// Maybe is true when the work may have been done without a proof.
	Maybe bool
	// RetryAfter is the wait that the destination asks for; 0 means none. It
	// is set for Retry only.
	RetryAfter time.Duration
	// Err is nil when there is a complete reply. It is an *Error.
	Err error
	// Started and Ended are this process's times.
	Started time.Time
	Ended   time.Time
}

// Send makes one attempt and waits for its end. It does not return before
// the transport has let go of the request.
func (s *Sender) Send(ctx context.Context, a Attempt) Exchange {
	x := Exchange{Started: time.Now()}
	end := End{Direction: a.Direction, Method: a.Request.Method, MayHaveHappened: a.MayHaveHappened, Answer: a.Answer}
	failure := s.exchange(ctx, a, &x, &end)
	x.Ended = time.Now()
	x.Sent, x.Status = end.Sent, end.Status
	if failure != nil {
		failure.Destination = s.cfg.Destination
		x.Err = failure
	}
	verdict := Classify(end)
	x.Class, x.Maybe = verdict.Class, verdict.Maybe
	if x.Class != Retry {
		x.RetryAfter = 0
	}
	s.cfg.Logger.DebugContext(ctx, "call: attempt ended",
		slog.String("destination", s.cfg.Destination),
		slog.String("key", a.Key),
		slog.String("class", string(x.Class)),
		slog.Int("status", x.Status),
		slog.Bool("sent", x.Sent),
		slog.Duration("took", x.Ended.Sub(x.Started)),
		slog.Any("error", x.Err))
	return x
}
