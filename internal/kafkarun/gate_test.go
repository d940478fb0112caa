package kafkarun

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// A change that cannot be written is not acknowledged, and nobody reads it.
func TestGateCannotWrite(t *testing.T) {
	t.Parallel()
	g, err := newGate(srfake.NewRegistry().Handler(), filepath.Join(t.TempDir(), "r"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	do := func(method, path, body string) int {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Code
	}
	const schema = `{"schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[]}"}`
	require.Equal(t, http.StatusOK, do("POST", "/subjects/a/versions", schema))
	require.NoError(t, g.close()) // as a full disk would fail the next write
	require.Equal(t, http.StatusOK, do("GET", "/healthz", ""))
	require.Equal(t, http.StatusServiceUnavailable, do("POST", "/subjects/b/versions", schema))
	require.Equal(t, http.StatusServiceUnavailable, do("GET", "/schemas/ids/1", ""))
	require.Equal(t, http.StatusServiceUnavailable, do("GET", "/healthz", ""))
}
