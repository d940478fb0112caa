package call

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"
	"time"

	"github.com/ebbline/ebb/destination/spec"
)

// transports keeps the transport of a destination, and replaces it when our
// certificate has changed. Calls in flight end on the old one.
type transports struct {
	cfg Config

	mu      sync.Mutex
	of      [sha256.Size]byte
	current *http.Transport
}

func newTransports(cfg Config) *transports {
	t := &transports{cfg: cfg}
	t.current = t.make(cfg.TLS)
	return t
}

func (t *transports) make(config *tls.Config) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialTimeout := min(connectTimeout, t.cfg.Timeout)
	return &http.Transport{
		Proxy:                  nil, // never from the environment
		DialContext:            countedDial(guard{t.cfg.AllowPrivate}.dial(dialTimeout, t.cfg.Resolver)),
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConns:           t.cfg.Concurrency,
		MaxIdleConnsPerHost:    t.cfg.Concurrency,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		Protocols:              protocols,
	}
}

// with gives the transport that shows the certificate; nil shows none.
func (t *transports) with(c *spec.Certificates) (*http.Transport, *Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c == nil {
		return t.current, nil
	}
	of := digest(c)
	if of == t.of {
		return t.current, nil
	}
	config, bad := t.config(c)
	if bad != "" {
		return nil, &Error{Kind: KindSetup, Detail: bad}
	}
	t.current.CloseIdleConnections()
	t.current, t.of = t.make(config), of
	return t.current, nil
}

func (t *transports) config(c *spec.Certificates) (*tls.Config, string) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.cfg.TLS != nil {
		config = t.cfg.TLS.Clone()
	}
	pair, err := tls.X509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, "auth.mtls.cert and auth.mtls.key are not PEM, or do not belong together"
	}
	if leaf := pair.Leaf; leaf != nil && time.Now().After(leaf.NotAfter) {
		return nil, "auth.mtls.cert has expired on " + leaf.NotAfter.UTC().Format(time.DateOnly)
	}
	config.Certificates = []tls.Certificate{pair}
	if len(c.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, "auth.mtls.ca holds no certificate in PEM"
		}
	}
	return config, ""
}

func digest(c *spec.Certificates) [sha256.Size]byte {
	sum := sha256.New()
	for _, part := range [][]byte{c.Cert, c.Key, c.CA} {
		one := sha256.Sum256(part)
		_, _ = sum.Write(one[:])
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

func (t *transports) closeIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.CloseIdleConnections()
}
