package call

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/ebbline/ebb/destination/spec"
)

const (
	maxTokenReply = 64 << 10
	// tokenLife holds where the token endpoint names no life of its own.
	tokenLife = 5 * time.Minute
	// tokenMargin before its end a token is not used any more: a call takes
	// time, and clocks differ.
	tokenMargin = 30 * time.Second
)

// tokens gets access tokens by the client credentials grant (RFC 6749, 4.4)
// and keeps one until shortly before it expires.
type tokens struct {
	transport *http.Transport
	timeout   time.Duration
	flight    singleflight.Group

	mu   sync.Mutex
	held accessToken
}

// accessToken belongs to the credentials that it was given for.
type accessToken struct {
	of      string
	value   string
	expires time.Time // monotonic
}

// get gives a token for the credentials. Attempts that need one at the same
// time share one request. The failure says whose fault it is: ours (setup) or
// the endpoint's, which is an outage.
func (t *tokens) get(ctx context.Context, c *spec.ClientCredentials) (value string, failure *Error, setup bool) {
	of := fingerprint(c)
	t.mu.Lock()
	held := t.held
	t.mu.Unlock()
	if held.of == of && time.Now().Before(held.expires) {
		return held.value, nil, false
	}
	// The request goes on when this caller gives up: the others want it too.
	fetched := t.flight.DoChan(of, func() (any, error) {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), t.timeout, errAttemptTimeout)
		defer cancel()
		return t.fetch(ctx, c, of), nil
	})
	select {
	case got := <-fetched:
		r, _ := got.Val.(tokenReply)
		if r.failure == nil {
			return r.token.value, nil, false
		}
		own := *r.failure // the others get the same one, and each puts its name to it
		return "", &own, r.setup
	case <-ctx.Done():
		kind, cause := diagnose(ctx, ctx.Err())
		return "", &Error{Kind: kind, Host: c.TokenURL.Host, Detail: "waiting for an access token", cause: cause}, false
	}
}

// drop forgets a token that the destination did not accept.
func (t *tokens) drop(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held.value == value {
		t.held = accessToken{}
	}
}

type tokenReply struct {
	token   accessToken
	failure *Error
	setup   bool
}

func (t *tokens) fetch(ctx context.Context, c *spec.ClientCredentials, of string) tokenReply {
	asked := time.Now()
	reply, err := t.transport.RoundTrip(tokenRequest(ctx, c))
	if err != nil {
		kind, cause := diagnose(ctx, err)
		failure := failed(kind, c.TokenURL.Host, cause)
		failure.Token = true
		return tokenReply{failure: failure, setup: kind == KindUntrusted || kind == KindAddress}
	}
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxTokenReply))
	if err != nil {
		kind, cause := diagnose(ctx, err)
		return tokenReply{failure: &Error{Kind: kind, Host: c.TokenURL.Host, Token: true, cause: cause}}
	}
	if reply.StatusCode != http.StatusOK {
		return tokenReply{
			failure: &Error{Kind: KindToken, Host: c.TokenURL.Host, Token: true, Detail: fmt.Sprintf("status %d%s", reply.StatusCode, errorCode(body))},
			setup:   reply.StatusCode < 500 && reply.StatusCode != http.StatusTooManyRequests && reply.StatusCode != http.StatusRequestTimeout,
		}
	}
	token, bad := readToken(body, asked)
	if bad != "" {
		return tokenReply{failure: &Error{Kind: KindToken, Host: c.TokenURL.Host, Token: true, Detail: bad}, setup: true}
	}
	token.of = of
	t.mu.Lock()
	t.held = token
	t.mu.Unlock()
	return tokenReply{token: token}
}

func tokenRequest(ctx context.Context, c *spec.ClientCredentials) *http.Request {
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.Scope != "" {
		form.Set("scope", c.Scope)
	}
	if c.Audience != "" {
		form.Set("audience", c.Audience)
	}
	header := http.Header{"User-Agent": {"ebb"}, "Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if c.InBody {
		form.Set("client_id", c.ID)
		form.Set("client_secret", c.Secret)
	} else {
		// Both are form-encoded first, so that a colon in the id is no separator.
		pair := url.QueryEscape(c.ID) + ":" + url.QueryEscape(c.Secret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	body := form.Encode()
	r := &http.Request{
		Method: http.MethodPost, URL: c.TokenURL, Host: c.TokenURL.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)),
	}
	return r.WithContext(ctx)
}

// readToken reads the reply of a token endpoint, or says what is wrong with it.
func readToken(body []byte, asked time.Time) (accessToken, string) {
	var reply struct {
		Token   string          `json:"access_token"`
		Type    string          `json:"token_type"`
		Expires json.RawMessage `json:"expires_in"`
	}
	switch err := json.Unmarshal(body, &reply); {
	case err != nil:
		return accessToken{}, "the reply is not JSON"
	case reply.Token == "" || !printable(reply.Token):
		return accessToken{}, "the reply has no usable access_token"
	case reply.Type != "" && !strings.EqualFold(reply.Type, "bearer"):
		return accessToken{}, "the token is not a bearer token"
	}
	life := units(strings.Trim(string(reply.Expires), `"`), time.Second)
	if life == 0 {
		life = tokenLife
	}
	life = min(life, 24*time.Hour)
	return accessToken{value: reply.Token, expires: asked.Add(life - min(tokenMargin, life/4))}, ""
}

// errorCode gives the error code of RFC 6749 if the reply has one of those;
// nothing else of a reply gets into an error.
func errorCode(body []byte) string {
	var reply struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return ""
	}
	switch reply.Error {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope":
		return " " + reply.Error
	}
	return ""
}

func fingerprint(c *spec.ClientCredentials) string {
	sum := sha256.New()
	for _, part := range []string{c.TokenURL.String(), c.ID, c.Secret, c.Scope, c.Audience} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return string(sum.Sum(nil))
}
