package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ebbline/ebb/destination/call"
)

// maxWait caps what a Retry-After may ask for.
const maxWait = 10 * time.Minute

// Call makes one HTTP exchange for Send or Undo, and gives its end the meaning that it has for destination files: see the table of
// outcomes there. req is sent at most once, without following redirects, with the headers Idempotency-Key and traceparent of r. On an
// error the Result is empty.
func Call(client *http.Client, r Request, req *http.Request) (Result, error) {
	x := exchange(client, r.Key, r, req)
	end := call.End{
		Direction: call.Do, Method: req.Method, Sent: x.sent, Status: x.status, Complete: x.err == nil, RetryAfter: x.wait > 0, MayHaveHappened: r.MayHaveHappened,
	}
	if r.Undoing {
		end.Direction = call.Undo
	}
	switch call.Classify(end).Class {
	case call.Succeeded:
		return Result{Status: x.status, Reply: x.body}, nil
	case call.Refused:
		return Result{}, Refuse(x.text())
	case call.Retry:
		return Result{}, RetryAfter(x.wait)
	case call.NotSent:
		return Result{}, NotSent(x.err)
	case call.Misconfigured:
		return Result{}, Misconfigured(errors.New(x.text()))
	}
	return Result{}, Unknown(errors.New(x.text()))
}

// Ask makes one HTTP exchange for Lookup: a 2xx is the Result, 404 and 410 are NotFound, anything else leaves the question open. It has
// a key of its own, since it has nothing to do with what the destination remembers of the request.
func Ask(client *http.Client, r Request, req *http.Request) (Result, error) {
	x := exchange(client, r.Key+":lookup", r, req)
	switch {
	case !x.sent:
		return Result{}, NotSent(x.err)
	case x.err == nil && x.status >= 200 && x.status <= 299:
		return Result{Status: x.status, Reply: x.body}, nil
	case x.err == nil && (x.status == http.StatusNotFound || x.status == http.StatusGone):
		return Result{}, NotFound(x.text())
	}
	return Result{}, Unknown(errors.New(x.text()))
}

// exchanged is what is known of an HTTP exchange.
type exchanged struct {
	// sent says that there was a connection to write to: from then on nothing is certain without a reply.
	sent   bool
	status int
	body   []byte
	wait   time.Duration
	err    error
}

func (x exchanged) text() string {
	if x.err != nil {
		return x.err.Error()
	}
	return fmt.Sprintf("status %d", x.status)
}

func exchange(client *http.Client, key string, r Request, req *http.Request) (x exchanged) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	req = req.Clone(httptrace.WithClientTrace(req.Context(), trace))
	// net/http sends a request again by itself if it can have its body once more, or if it sees that it has a key: one attempt is at most
	// one request (G4), so it gets no second body, and the key's name in a form that it does not look for.
	req.GetBody = nil
	req.Header.Del("Idempotency-Key")
	req.Header["idempotency-key"] = []string{key}
	if r.TraceParent != "" {
		req.Header.Set("traceparent", r.TraceParent)
	}
	once := *client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := once.Do(req)
	x.sent = sent.Load()
	if err != nil {
		x.err = withoutURL(err)
		return x
	}
	defer resp.Body.Close()
	x.sent, x.status, x.wait = true, resp.StatusCode, waitOf(resp.Header.Get("Retry-After"), time.Now())
	x.body, x.err = io.ReadAll(io.LimitReader(resp.Body, MaxReply+1))
	if x.err == nil && len(x.body) > MaxReply {
		x.err = fmt.Errorf("status %d, and a reply of more than %d bytes", x.status, MaxReply)
	}
	return x
}

// withoutURL drops the address from an error: it may hold a credential.
func withoutURL(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	type wrapped interface{ Unwrap() error }
	if w, ok := err.(wrapped); ok && w.Unwrap() != nil { // always a *url.Error
		return w.Unwrap()
	}
	return err
}

// waitOf reads a Retry-After: seconds, or an HTTP date.
func waitOf(value string, now time.Time) time.Duration {
	d := time.Duration(0)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxWait)
}
