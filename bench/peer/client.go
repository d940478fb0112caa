package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Reply is how a call ended.
type Reply struct {
	Status  int
	Body    []byte
	Started time.Time
	Took    time.Duration
}

// OK tells a success from a refusal.
func (r Reply) OK() bool { return r.Status/100 == 2 }

// errUnexpected is a reply that none of the loops knows what to do with.
var errUnexpected = errors.New("the API answered neither with success nor with a refusal")

// caller makes calls on connections that are kept.
type caller struct {
	base   string
	client *http.Client
}

func newCaller(base string, connections int) *caller {
	return &caller{base: base, client: &http.Client{Transport: &http.Transport{
		MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
	}}}
}

func (c *caller) close() { c.client.CloseIdleConnections() }

func (c *caller) call(ctx context.Context, method, path, key string, body []byte) (Reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return Reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	out := Reply{Started: time.Now()}
	resp, err := c.client.Do(req)
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }()
	out.Status = resp.StatusCode
	if out.Body, err = io.ReadAll(resp.Body); err != nil {
		return out, err
	}
	out.Took = time.Since(out.Started)
	if !out.OK() && out.Status != http.StatusUnprocessableEntity {
		return out, fmt.Errorf("%w: %s %s gave %d", errUnexpected, method, path, out.Status)
	}
	return out, nil
}
