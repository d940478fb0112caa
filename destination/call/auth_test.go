package call_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/spec"
)

// resolver gives the live values of a file with the auth, from an environment that can change.
func resolver(t *testing.T, auth string, env *sync.Map) func() (spec.Live, error) {
	t.Helper()
	s, err := spec.Parse("t.yaml", []byte("destination: billing\non: E\nbase_url: \"${env:URL}\"\nidempotent: true\nauth: "+auth+"\nrequest: { url: /a }\nrevert: none\n"))
	require.NoError(t, err)
	return func() (spec.Live, error) {
		return s.Resolve(spec.Lookup{File: os.ReadFile, Env: func(name string) (string, bool) {
			v, ok := env.Load(name)
			text, _ := v.(string)
			return text, ok
		}})
	}
}

const oauth2 = `{ oauth2: { token_url: "${env:TOKEN_URL}", client_id: "ebb:1", client_secret: "${env:SECRET}", scope: [ orders, refunds ], audience: billing%s } }`

// tokenWorld is a token endpoint and a destination that accepts its newest token.
type tokenWorld struct {
	env    sync.Map
	asked  atomic.Int32
	called atomic.Int32
	form   atomic.Value // the last one
	reply  atomic.Value // func(w, n): instead of a token
	newest atomic.Value
}

func startTokenWorld(t *testing.T) *tokenWorld {
	t.Helper()
	w := &tokenWorld{}
	endpoint := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		n := w.asked.Add(1)
		_ = r.ParseForm()
		user, password, _ := r.BasicAuth()
		w.form.Store(fmt.Sprintf("%s|%s|%s|%s", user, password, r.PostForm.Encode(), r.Header.Get("Content-Type")))
		if f, ok := w.reply.Load().(func(http.ResponseWriter)); ok && f != nil {
			f(rw)
			return
		}
		token := fmt.Sprintf("canary-token-%d", n)
		w.newest.Store(token)
		_, _ = fmt.Fprintf(rw, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
	})
	api := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		w.called.Add(1)
		newest, _ := w.newest.Load().(string)
		if r.Header.Get("Authorization") != "Bearer "+newest {
			rw.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = fmt.Fprintf(rw, `{"echo":%q}`, r.Header.Get("Authorization"))
	})
	w.env.Store("URL", api.URL)
	w.env.Store("TOKEN_URL", endpoint.URL+"/oauth2/token")
	w.env.Store("SECRET", "canary-secret&1")
	return w
}

func (w *tokenWorld) sender(t *testing.T, more string) *call.Sender {
	t.Helper()
	return newSender(t, call.Config{Resolve: resolver(t, fmt.Sprintf(oauth2, more), &w.env)})
}

func TestOAuth2(t *testing.T) {
	t.Parallel()
	w := startTokenWorld(t)
	s := w.sender(t, "")
	var wg sync.WaitGroup
	ended := make([]call.Exchange, 8)
	for i := range ended {
		wg.Go(func() { ended[i] = s.Send(t.Context(), attempt("POST", "/a", `{}`)) })
	}
	wg.Wait()
	for _, x := range ended {
		require.Equal(t, call.Succeeded, x.Class, x.Err)
		require.NotContains(t, string(x.Body), "canary", "the token is a credential too")
	}
	require.EqualValues(t, 1, w.asked.Load(), "one token for all")
	require.Equal(t, "ebb%3A1|canary-secret%261|audience=billing&grant_type=client_credentials&scope=orders+refunds|application/x-www-form-urlencoded", w.form.Load())

	w.newest.Store("revoked")
	require.Equal(t, call.Misconfigured, s.Send(t.Context(), attempt("POST", "/a", `{}`)).Class)
	require.Equal(t, call.Succeeded, s.Send(t.Context(), attempt("POST", "/a", `{}`)).Class, "a token that is not accepted is dropped")
	require.EqualValues(t, 2, w.asked.Load())

	w.env.Store("SECRET", "rotated")
	require.Equal(t, call.Succeeded, s.Send(t.Context(), attempt("POST", "/a", `{}`)).Class)
	require.EqualValues(t, 3, w.asked.Load(), "a token belongs to the credentials that it was given for")

	body := w.sender(t, ", send: body")
	require.Equal(t, call.Succeeded, body.Send(t.Context(), attempt("POST", "/a", `{}`)).Class)
	require.Equal(t, "||audience=billing&client_id=ebb%3A1&client_secret=rotated&grant_type=client_credentials&scope=orders+refunds|application/x-www-form-urlencoded", w.form.Load())
}

func TestOAuth2Failures(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) func(http.ResponseWriter) {
		return func(rw http.ResponseWriter) {
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, body)
		}
	}
	for name, c := range map[string]struct {
		reply func(http.ResponseWriter)
		class call.Class
		kind  call.Kind
		want  string
	}{
		"wrong secret":      {answer(401, `{"error":"invalid_client","error_description":"canary-secret"}`), call.Misconfigured, call.KindToken, "status 401 invalid_client"},
		"unknown error":     {answer(400, `{"error":"canary-secret"}`), call.Misconfigured, call.KindToken, "status 400"},
		"redirect":          {answer(302, ""), call.Misconfigured, call.KindToken, "status 302"},
		"down":              {answer(503, "canary-secret"), call.NotSent, call.KindToken, "status 503"},
		"too many":          {answer(429, ""), call.NotSent, call.KindToken, "status 429"},
		"not JSON":          {answer(200, "canary-secret"), call.Misconfigured, call.KindToken, "not JSON"},
		"no token":          {answer(200, "{}"), call.Misconfigured, call.KindToken, "no usable access_token"},
		"token of two rows": {answer(200, `{"access_token":"a\r\nX: y"}`), call.Misconfigured, call.KindToken, "no usable access_token"},
		"not a bearer":      {answer(200, `{"access_token":"x","token_type":"mac"}`), call.Misconfigured, call.KindToken, "not a bearer"},
		"cut":               {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, call.NotSent, call.KindCut, "no access token: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startTokenWorld(t)
			w.reply.Store(c.reply)
			x := w.sender(t, "").Send(t.Context(), attempt("POST", "/a", `{}`))
			require.Equal(t, c.class, x.Class, x.Err)
			require.Equal(t, c.kind, kindOf(t, x.Err))
			require.ErrorContains(t, x.Err, c.want)
			require.NotContains(t, x.Err.Error(), "canary")
			require.False(t, x.Sent)
			require.Zero(t, w.called.Load(), "the destination was not asked")
		})
	}
	w := startTokenWorld(t)
	w.env.Store("TOKEN_URL", "http://169.254.169.254/token")
	x := w.sender(t, "").Send(t.Context(), attempt("POST", "/a", `{}`))
	require.Equal(t, call.Misconfigured, x.Class)
	require.Equal(t, call.KindAddress, kindOf(t, x.Err), "the guard stands before the token endpoint too")
	w.env.Delete("SECRET")
	x = w.sender(t, "").Send(t.Context(), attempt("POST", "/a", `{}`))
	require.Equal(t, call.Misconfigured, x.Class)
	require.ErrorContains(t, x.Err, "auth.oauth2.client_secret ${env:SECRET} is not set")
}

// authority issues certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *authority) issue(t *testing.T, name string, until time.Time) (cert, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &own.PublicKey, a.key)
	require.NoError(t, err)
	raw, err := x509.MarshalECPrivateKey(own)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ours, theirs, other := newAuthority(t, "ours"), newAuthority(t, "theirs"), newAuthority(t, "other")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"cn":%q}`, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	cert, key := theirs.issue(t, "billing", time.Now().Add(time.Hour))
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(ours.cert)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	show := func(from *authority, name string, until time.Time) {
		cert, key := from.issue(t, name, until)
		write("tls.crt", cert)
		write("tls.key", key)
	}
	write("ca.crt", theirs.pem)
	var env sync.Map
	env.Store("URL", server.URL)
	auth := fmt.Sprintf(`{ mtls: { cert: %[1]s/tls.crt, key: "${file:%[1]s/tls.key}", ca: %[1]s/ca.crt } }`, dir)
	s := newSender(t, call.Config{Resolve: resolver(t, auth, &env)})
	send := func() call.Exchange { return s.Send(t.Context(), attempt("POST", "/a", `{}`)) }

	show(ours, "first", time.Now().Add(time.Hour))
	require.Equal(t, `{"cn":"first"}`, string(send().Body))
	show(ours, "second", time.Now().Add(time.Hour))
	require.Equal(t, `{"cn":"second"}`, string(send().Body), "a file that has changed is read again")

	show(other, "stranger", time.Now().Add(time.Hour))
	x := send()
	require.Equal(t, call.Misconfigured, x.Class, x.Err)
	require.Equal(t, call.KindRejected, kindOf(t, x.Err))
	require.False(t, x.Maybe, "the handshake was refused, so the request was not read")

	show(ours, "old", time.Now().Add(-time.Minute))
	x = send()
	require.Equal(t, call.Misconfigured, x.Class)
	require.ErrorContains(t, x.Err, "auth.mtls.cert has expired on ")

	write("tls.key", []byte("canary"))
	x = send()
	require.Equal(t, call.Misconfigured, x.Class)
	require.ErrorContains(t, x.Err, "do not belong together")
	require.NotContains(t, x.Err.Error(), "canary")
	require.NoError(t, os.Remove(filepath.Join(dir, "tls.key")))
	require.ErrorContains(t, send().Err, "auth.mtls.key ${file:"+dir+"/tls.key} cannot be read")

	show(ours, "third", time.Now().Add(time.Hour))
	write("ca.crt", other.pem)
	x = send()
	require.Equal(t, call.KindUntrusted, kindOf(t, x.Err), "only the named authorities are trusted")
	write("ca.crt", theirs.pem)
	require.Equal(t, call.Succeeded, send().Class)

	env.Store("URL", "http://127.0.0.1:1")
	require.ErrorContains(t, send().Err, "must begin with https://, because auth has mtls")
}
