package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/internal/kafkarun"
	"github.com/ebbline/ebb/schemas"
)

func TestSchemasCheck(t *testing.T) {
	t.Parallel()
	status, out, stderr := ebb(t, "schemas", "check")
	require.Equal(t, exitOK, status, stderr)
	for _, m := range schemas.Messages() {
		require.Contains(t, out, m.Subject)
	}
	registry, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: t.TempDir() + "/registry.jsonl"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = registry.Close() })
	status, _, stderr = ebb(t, "schemas", "check", "--registry", registry.URL())
	require.Equal(t, exitOK, status, stderr)
	status, _, _ = ebb(t, "schemas", "check", "--registry", "http://127.0.0.1:1")
	require.Equal(t, exitUnreachable, status)
	status, _, _ = ebb(t, "schemas", "check", "--registry", "127.0.0.1:1")
	require.Equal(t, exitUsage, status)
}

// While the schemas are not known, changes get a problem and reading goes on; parts that publish wait.
func TestSchemaWait(t *testing.T) {
	t.Parallel()
	status := http.StatusServiceUnavailable
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(front.Close)
	client, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{front.URL}})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	w := newSchemaWait(client)
	require.ErrorContains(t, w.check(t.Context()), "waiting for the schema registry")

	answer := func(method string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
		w.guard(ok).ServeHTTP(rec, httptest.NewRequest(method, "/api/orders", nil))
		return rec
	}
	require.Equal(t, http.StatusTeapot, answer(http.MethodGet).Code)
	refused := answer(http.MethodPost)
	require.Equal(t, http.StatusServiceUnavailable, refused.Code)
	require.Equal(t, "application/problem+json", refused.Header().Get("Content-Type"))
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	require.Contains(t, refused.Body.String(), `"type":"urn:ebb:problem:schemas-unknown"`)

	ctx, cancel := context.WithCancel(t.Context())
	ran := false
	part := w.after(func(context.Context) error {
		ran = true
		return nil
	})
	cancel()
	require.NoError(t, part(ctx), "a stop ends the wait")
	require.False(t, ran)

	close(w.known)
	require.NoError(t, w.check(t.Context()))
	require.Equal(t, http.StatusTeapot, answer(http.MethodPost).Code)
	require.NoError(t, part(t.Context()))
	require.True(t, ran)
}

func TestRecordFlags(t *testing.T) {
	t.Parallel()
	f := recordFlags{HeaderID: "a", HeaderType: "b", HeaderVersion: "c", HeaderTime: "d", HeaderTrace: "e", EventType: "f"}
	require.Equal(t, consumers.Records{ID: "a", Type: "b", Version: "c", Time: "d", TraceParent: "e", EventType: "f"}, f.records())
	_, err := recordFlags{RecordFormat: "xml"}.decoder(nil)
	var usage *usageError
	require.ErrorAs(t, err, &usage)
	status, _, stderr := ebb(t, "consumer", "--destination", "billing", "--record-format", "xml")
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "record-format")
}
