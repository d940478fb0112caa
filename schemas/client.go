package schemas

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"golang.org/x/sync/singleflight"
)

// maxReply bounds a reply of the registry.
const maxReply = 4 << 20

// ClientConfig configures a registry client.
type ClientConfig struct {
	// URLs of the registry, tried in order. At least one, http or https.
	// Credentials do not belong in it.
	URLs []string

	// Username and Password authenticate by HTTP basic auth. Zero: none.
	Username, Password string

	// BearerToken authenticates by token, instead of basic auth. Zero: none.
	BearerToken string

	// TLS for https URLs. Nil: the system's defaults.
	TLS *tls.Config

	// Timeout of one request. Zero: 5 seconds.
	Timeout time.Duration

	// UnknownFor is how long an id that the registry did not know is not asked
	// for again, so that hostile ids cannot flood it. Zero: 1 second. Negative:
	// ask every time.
	UnknownFor time.Duration

	// KnownFile keeps what the registry has answered, so that a start while it is away goes on with what is known. It holds schemas and
	// no secrets. Zero: none. A registry that is replaced by another one under the same URL needs the file to be removed.
	KnownFile string

	// Logger. Nil: nothing is logged.
	Logger *slog.Logger
}

func (c ClientConfig) withDefaults() ClientConfig {
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.UnknownFor == 0 {
		c.UnknownFor = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c ClientConfig) validate() error {
	var errs []error
	if len(c.URLs) == 0 {
		errs = append(errs, errors.New("URLs: at least one is needed, for example http://127.0.0.1:8081"))
	}
	for i, raw := range c.URLs {
		u, err := url.Parse(raw)
		switch {
		case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
			errs = append(errs, fmt.Errorf("URLs[%d]: it is not an http or https URL with a host", i))
		case u.User != nil:
			errs = append(errs, fmt.Errorf("URLs[%d]: it holds credentials; use Username and Password", i))
		}
	}
	if c.BearerToken != "" && c.Username != "" {
		errs = append(errs, errors.New("BearerToken, Username: only one way to authenticate can be used"))
	}
	if c.Username == "" && c.Password != "" {
		errs = append(errs, errors.New("setting Username is missing, and Password is set"))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("setting Timeout is negative: %v", c.Timeout))
	}
	return errors.Join(errs...)
}

// Client finds and registers schemas. Answers are kept for good, since the
// meaning of an id never changes. It is safe for concurrent use.
type Client struct {
	sr      *sr.Client
	http    *http.Client
	log     *slog.Logger
	timeout time.Duration
	unknown unknownIDs
	known   *known

	flight  singleflight.Group
	writers sync.Map // int -> *writer
	ids     sync.Map // *message -> int
}

// NewClient returns a client; it does not connect yet.
func NewClient(cfg ClientConfig) (*Client, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("schema registry client: %w", err)
	}
	cfg = cfg.withDefaults()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = cfg.TLS
	hc := &http.Client{
		Timeout:   cfg.Timeout,
		Transport: limitedTransport{transport},
		// A redirect may lead credentials and questions anywhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	opts := []sr.ClientOpt{sr.URLs(cfg.URLs...), sr.HTTPClient(hc), sr.UserAgent("ebb")}
	if cfg.Username != "" {
		opts = append(opts, sr.BasicAuth(cfg.Username, cfg.Password))
	}
	if cfg.BearerToken != "" {
		opts = append(opts, sr.BearerToken(cfg.BearerToken))
	}
	client, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("schema registry client: %w", err)
	}
	return &Client{
		sr: client, http: hc, log: cfg.Logger, timeout: cfg.Timeout,
		unknown: unknownIDs{ttl: cfg.UnknownFor},
		known:   openKnown(context.Background(), cfg.KnownFile, cfg.URLs, cfg.Logger),
	}, nil
}

// Close releases idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Warm learns the ids of all our event types, so that neither encoding them
// nor decoding this program's own records needs the registry afterwards. The
// error joins a [NotRegisteredError] per missing type, or is an
// [UnavailableError].
func (c *Client) Warm(ctx context.Context) error {
	var errs []error
	for _, m := range contract().messages {
		_, err := c.idOf(ctx, m)
		var missing *NotRegisteredError
		switch {
		case err == nil:
		case errors.As(err, &missing):
			errs = append(errs, err)
		default:
			return err
		}
	}
	return errors.Join(errs...)
}

// awaitEvery is the pause between two tries of [Client.Await].
const awaitEvery = 500 * time.Millisecond

// Await warms the client, and tries again while the registry is away. failed gets the error of every try; nil is allowed. A registry
// that answers and does not have a schema ends the wait, since waiting would not help: the error is then that of [Client.Warm], else
// that of ctx.
func (c *Client) Await(ctx context.Context, failed func(error)) error {
	for {
		err := c.Warm(ctx)
		if err == nil {
			return nil
		}
		if failed != nil {
			failed(err)
		}
		var away *UnavailableError
		if !errors.As(err, &away) {
			return err
		}
		c.log.WarnContext(ctx, "waiting for the schema registry", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(awaitEvery):
		}
	}
}

// idOf gives the schema id of one of our types.
func (c *Client) idOf(ctx context.Context, m *message) (int, error) {
	if id, ok := c.ids.Load(m); ok {
		return id.(int), nil
	}
	v, err := c.once(ctx, "subject "+m.Subject, func(ctx context.Context) (any, error) {
		// Somebody else's request may have ended since the look above.
		if id, ok := c.ids.Load(m); ok {
			return id, nil
		}
		found, err := c.sr.LookupSchema(ctx, m.Subject, sr.Schema{Schema: m.Schema})
		if notFound(err, codeSubject, codeVersion, codeSchema) {
			return nil, &NotRegisteredError{Subject: m.Subject}
		}
		if err == nil && found.ID <= 0 {
			err = errors.New("the reply has no schema id")
		}
		if err != nil {
			return c.knownID(ctx, m, unavailable("subject "+m.Subject, err))
		}
		c.learn(m, found.ID)
		c.known.learnID(ctx, m, found.ID)
		return found.ID, nil
	})
	if err != nil {
		return 0, err
	}
	return v.(int), nil
}

// knownID gives the id that an earlier run was told, or why there is none.
func (c *Client) knownID(ctx context.Context, m *message, away error) (any, error) {
	id, ok := c.known.id(m)
	if !ok {
		return nil, away
	}
	c.log.WarnContext(ctx, "schemas: the registry is away, going on with the id that it gave before", "subject", m.Subject, "schema_id", id, "error", away)
	c.learn(m, id)
	return id, nil
}

// learn remembers the id of one of our types, in both directions.
func (c *Client) learn(m *message, id int) {
	if w, err := newWriter(id, m.reader); err == nil {
		c.writers.LoadOrStore(id, w)
	}
	c.ids.Store(m, id)
}

// once runs one request per key at a time and shares its answer. The request
// outlives a caller that gives up, since others may wait for it too; it ends
// with the request timeout.
func (c *Client) once(ctx context.Context, key string, ask func(context.Context) (any, error)) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answer := c.flight.DoChan(key, func() (any, error) {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*c.timeout)
		defer cancel()
		return ask(detached)
	})
	select {
	case r := <-answer:
		return r.Val, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Codes of the registry's 404 replies. A 404 without one of them comes from
// something else that answers at this URL.
const (
	codeSubject = 40401
	codeVersion = 40402
	codeSchema  = 40403
)

func notFound(err error, codes ...int) bool {
	var reply *sr.ResponseError
	if !errors.As(err, &reply) || reply.StatusCode != http.StatusNotFound {
		return false
	}
	for _, code := range codes {
		if reply.ErrorCode == code {
			return true
		}
	}
	return false
}

// unavailable keeps the status of a failed request and drops the reply, which
// may be anything.
func unavailable(op string, err error) error {
	if reply, ok := errors.AsType[*sr.ResponseError](err); ok {
		return &UnavailableError{Op: op, Status: reply.StatusCode, Err: fmt.Errorf("error code %d", reply.ErrorCode)}
	}
	return &UnavailableError{Op: op, Err: err}
}

// limitedTransport bounds what is read of a reply.
type limitedTransport struct{ next *http.Transport }

func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxReply)
	}
	return resp, err
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the pool.
func (t limitedTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }
