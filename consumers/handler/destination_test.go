package handler_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers/handler"
)

// Everything that is wrong is said at once, without a secret.
func TestRunNamesEveryProblem(t *testing.T) {
	t.Parallel()
	err := handler.Run(context.Background(), handler.Config{DSN: "postgres://u:hunter2@[", Margin: -1, Format: "xml"}, handler.Destination{
		Name: "1 crm", After: []string{"1 crm"}, Window: time.Hour, Burst: 2, Aggregate: "a b", Patience: -1,
		Roles: map[string]handler.Role{"Voided": handler.Cancelling, "Odd": 0},
		Retry: handler.Retry{Base: time.Minute, Max: time.Second},
	})
	for _, part := range []string{
		"Config.DSN", "Config.Brokers", "Config.Registry", "Config.Margin", "Config.Format", "Destination.Name", "Destination.Handler",
		"Destination.On ", "Destination.After", "Destination.Window", "Destination.Burst", "Destination.Aggregate", "Destination.Patience", `"Voided" is Cancelling`, `no role for "Odd"`,
		"Destination.Retry.Max",
	} {
		require.ErrorContains(t, err, part)
	}
	require.NotContains(t, err.Error(), "hunter2")
}

func TestErrorsKeepTheirCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	for _, err := range []error{handler.NotSent(cause), handler.Unknown(cause), handler.Misconfigured(cause)} {
		require.ErrorIs(t, err, cause)
		require.EqualError(t, err, "connection refused")
	}
	require.EqualError(t, handler.NotSent(nil), "no cause given")
	require.ErrorContains(t, handler.RetryAfter(-time.Second), "after 0s")
}

func TestFromEnvTakesWhatIsMissingFromARunningEbb(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"),
		[]byte(`{"pid":1,"dsn":"postgres://found","brokers":["found:9092"],"registry":["http://found"]}`), 0o600))
	t.Setenv("EBB_DATA", dir)
	t.Setenv("EBB_DSN", "postgres://given")
	t.Setenv("EBB_BROKERS", "a:1,b:2")
	t.Setenv("EBB_REGISTRY_URL", "")
	t.Setenv("EBB_HTTP", "127.0.0.1:0")
	c, err := handler.FromEnv()
	require.NoError(t, err)
	require.Equal(t, "postgres://given", c.DSN)
	require.Equal(t, []string{"a:1", "b:2"}, c.Brokers)
	require.Equal(t, []string{"http://found"}, c.Registry)
	require.Equal(t, "127.0.0.1:0", c.HTTP)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(`{`), 0o600))
	_, err = handler.FromEnv()
	require.ErrorContains(t, err, "run.json")
	t.Setenv("EBB_DATA", t.TempDir())
	c, err = handler.FromEnv()
	require.NoError(t, err)
	require.Empty(t, c.Registry)
}
