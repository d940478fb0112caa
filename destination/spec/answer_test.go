package spec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/spec"
)

// TestAnswers: a route's key replaces that of the file, and an undo has its own.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("t.yaml", []byte(`destination: billing
on: OrderCreated
base_url: https://api.example.com
idempotent: true
success_when: { path: $.ok, op: eq, value: true }
failure_when: { path: $.error, op: exists }
expect: $.id
classify: [ { status: [409, 5xx, "418-420"], when: { path: $.code, op: eq, value: busy }, as: retry } ]
routes:
  - when: { path: $.a, op: exists }
    url: /a
    revert: { method: POST, url: /a/undo, classify: [ { status: 410, as: succeeded } ], expect: [ $.refund ] }
  - url: /b
    success_when: { path: $.state, op: eq, value: done }
    classify: [ { status: 409, as: unknown } ]
    revert: none
`))
	require.NoError(t, err)
	a, b := s.Routes[0].Call.Answer, s.Routes[1].Call.Answer
	require.Equal(t, "reply $.ok eq true", a.SuccessWhen.String())
	require.Equal(t, `reply $.state eq "done"`, b.SuccessWhen.String())
	require.Equal(t, a.FailureWhen, b.FailureWhen, "what a route leaves out is the file's")
	require.Equal(t, "$.id", a.Expect[0].String())
	require.Equal(t, spec.MeansUnknown, b.Classify[0].As)
	for status, want := range map[int]bool{409: true, 500: true, 599: true, 418: true, 420: true, 421: false, 408: false, 200: false} {
		require.Equal(t, want, a.Classify[0].Has(status), status)
	}
	undo := s.Routes[0].Revert.Answer
	require.Nil(t, undo.SuccessWhen, "an undo is another call")
	require.Len(t, undo.Classify, 1)
	require.Equal(t, "$.refund", undo.Expect[0].String())
	require.Empty(t, s.Warnings())

	s, err = spec.Parse("t.yaml", []byte(valid+"classify: [ { status: 5xx, as: refused } ]\n"))
	require.NoError(t, err)
	require.Len(t, s.Warnings(), 1)
	require.Contains(t, s.Warnings()[0].Message, "takes a server error for a refusal")
}

func TestAuthParses(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("t.yaml", []byte(valid+`auth:
  oauth2: { token_url: "${env:TOKEN_URL}", client_id: ebb, client_secret: "${file:/run/secret}", scope: [ "a:write", b ], audience: x, send: body }
  mtls: { cert: /etc/tls.crt, key: "${env:KEY_PEM}" }
`))
	require.NoError(t, err)
	require.Equal(t, spec.AuthOAuth2, s.Auth.Kind)
	require.Equal(t, "a:write b", s.Auth.OAuth2.Scope)
	require.True(t, s.Auth.OAuth2.InBody)
	require.Equal(t, "/etc/tls.crt", s.Auth.TLS.Cert.String())

	env := map[string]string{"STOCK_URL": "https://h", "TOKEN_URL": "https://login/token", "KEY_PEM": "-----BEGIN\ncanary\n-----END\n"}
	live, err := s.Resolve(spec.Lookup{
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		File: func(path string) ([]byte, error) {
			return []byte(map[string]string{"/run/secret": "canary-secret\n", "/etc/tls.crt": "PEM\nPEM\n"}[path]), nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, "canary-secret", live.OAuth2().Secret)
	require.Equal(t, "PEM\nPEM\n", string(live.Certificates().Cert), "a PEM file has many lines")
	require.Equal(t, []string{"canary-secret"}, live.Secrets())
	hidden(t, live, live.OAuth2(), live.Certificates())

	env["TOKEN_URL"] = "https://login/token?x=canary"
	_, err = s.Resolve(spec.Lookup{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, File: func(string) ([]byte, error) { return []byte("x"), nil }})
	require.EqualError(t, err, "destination stock: auth.oauth2.token_url ${env:TOKEN_URL} has a query or fragment; only scheme, host and path are allowed")
}

func hidden(t *testing.T, values ...any) {
	t.Helper()
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			require.NotContains(t, fmt.Sprintf(verb, v), "canary", "%s of %T", verb, v)
			require.NotContains(t, fmt.Sprintf(verb, struct{ In any }{v}), "canary", "%s of %T", verb, v)
		}
	}
}
