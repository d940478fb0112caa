package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T, h http.Handler, path string) (int, map[string]string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	body := map[string]string{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
	return w.Code, body
}

func TestReadinessNamesWhatIsNotWell(t *testing.T) {
	t.Parallel()
	o := NewOps()
	mux := http.NewServeMux()
	o.Routes(mux)
	code, body := get(t, mux, "/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Empty(t, body)

	o.Check("kafka", func(context.Context) error { return nil })
	o.Check("database", func(context.Context) error { return errors.New("connection refused") })
	code, body = get(t, mux, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, map[string]string{"kafka": "ok", "database": "connection refused"}, body)
	code, body = get(t, mux, "/healthz")
	require.Equal(t, http.StatusOK, code, "it runs all the same")
	require.Equal(t, map[string]string{"status": "ok"}, body)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Contains(t, w.Body.String(), "go_goroutines")
}

// A check that takes long holds up neither another question nor another check.
func TestASlowCheckHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	o := NewOps()
	mux := http.NewServeMux()
	o.Routes(mux)
	entered, release := make(chan struct{}, 2), make(chan struct{})
	o.Check("slow", func(context.Context) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	codes := make(chan int, 2)
	for range 2 {
		go func() {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/readyz", nil))
			codes <- w.Code
		}()
	}
	<-entered
	<-entered
	o.Check("late", func(context.Context) error { return nil })
	close(release)
	require.Equal(t, http.StatusOK, <-codes)
	require.Equal(t, http.StatusOK, <-codes)
}

func TestListenNamesTheFlag(t *testing.T) {
	t.Parallel()
	ln, err := Listen(t.Context(), "127.0.0.1:0", "--http")
	require.NoError(t, err)
	defer func() { require.NoError(t, ln.Close()) }()
	_, err = Listen(t.Context(), ln.Addr().String(), "--http")
	var taken *TakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, "--http", taken.Flag)
	require.ErrorContains(t, err, "choose another address with --http")
}

// Requests in flight may end within the grace, and no longer.
func TestServeLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		grace time.Duration
		ends  bool
	}{
		"within the grace": {time.Minute, true},
		"beyond it":        {time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ln, err := Listen(t.Context(), "127.0.0.1:0", "--http")
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			entered, release := make(chan struct{}), make(chan struct{})
			h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(entered)
				<-release
				_, _ = io.WriteString(w, "done")
			})
			served := make(chan error, 1)
			go func() { served <- Serve(ctx, ln, h, tc.grace) }()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			answered := make(chan error, 1)
			go func() {
				r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+ln.Addr().String(), nil)
				if err == nil {
					var resp *http.Response
					if resp, err = client.Do(r); err == nil {
						err = resp.Body.Close()
					}
				}
				answered <- err
			}()
			<-entered
			stop()
			if tc.ends {
				close(release)
				require.NoError(t, <-answered)
				require.NoError(t, <-served)
			} else {
				require.NoError(t, <-served)
				require.Error(t, <-answered)
				close(release)
			}
			_, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
			require.Error(t, err, "nothing listens any more")
		})
	}
}
