package handler_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers/handler"
)

// says is an HTTP server's answer, and what was seen of the requests.
func says(t *testing.T, status int, header map[string]string, body string) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var seen atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Key", r.Header.Get("Idempotency-Key"))
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server, &seen
}

func TestCallGivesStatusesTheMeaningOfDestinationFiles(t *testing.T) {
	t.Parallel()
	date := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		status  int
		header  map[string]string
		body    string
		method  string
		request handler.Request
		class   string
	}{
		"created":                     {status: 201, body: `{"id":1}`, class: ""},
		"refused":                     {status: 422, class: "REFUSED"},
		"conflict":                    {status: 409, class: "REFUSED"},
		"conflict with ourselves":     {status: 409, request: handler.Request{MayHaveHappened: true}, class: "RETRY"},
		"too many":                    {status: 429, header: map[string]string{"Retry-After": "7"}, class: "RETRY 7s"},
		"too many, by date":           {status: 429, header: map[string]string{"Retry-After": date}, class: "RETRY"},
		"overloaded":                  {status: 503, header: map[string]string{"Retry-After": "99999999"}, class: "RETRY 10m0s"},
		"a bare 503":                  {status: 503, class: "UNKNOWN"},
		"unauthorised":                {status: 401, class: "MISCONFIGURED"},
		"a redirect is not followed":  {status: 307, header: map[string]string{"Location": "/"}, class: "MISCONFIGURED"},
		"cut":                         {status: 0, class: "UNKNOWN"},
		"a reply without end":         {status: 200, body: strings.Repeat("x", handler.MaxReply+1), class: "UNKNOWN"},
		"what is gone needs no undo":  {status: 404, method: http.MethodDelete, request: handler.Request{Undoing: true}, class: ""},
		"what is gone is not deleted": {status: 404, method: http.MethodDelete, class: "REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, seen := says(t, c.status, c.header, c.body)
			c.request.Key = "k"
			if c.method == "" {
				c.method = http.MethodPost
			}
			req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL, strings.NewReader("body"))
			require.NoError(t, err)
			out, err := handler.Call(server.Client(), c.request, req)
			class, wait := handler.ClassOf(err)
			if strings.HasSuffix(c.class, "s") {
				class += " " + wait.String()
			}
			require.Equal(t, c.class, class)
			require.EqualValues(t, 1, seen.Load())
			if c.class == "" {
				require.Equal(t, c.status, out.Status)
				require.Equal(t, c.body, string(out.Reply))
			} else {
				require.Empty(t, out)
			}
		})
	}
}

func TestCallsThatDoNotReachAnybodyAreNotSent(t *testing.T) {
	t.Parallel()
	server, _ := says(t, 200, nil, "")
	server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/?token=hunter2", strings.NewReader("body"))
	require.NoError(t, err)
	for _, do := range []func(*http.Client, handler.Request, *http.Request) (handler.Result, error){handler.Call, handler.Ask} {
		_, err = do(http.DefaultClient, handler.Request{Key: "k"}, req)
		class, _ := handler.ClassOf(err)
		require.Equal(t, "NOT_SENT", class)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestACallThatTakesTooLongMayHaveHappened(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(errors.New("too long"))
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
	require.NoError(t, err)
	_, err = handler.Call(server.Client(), handler.Request{Key: "k"}, req)
	class, _ := handler.ClassOf(err)
	require.Equal(t, "UNKNOWN", class)
}

func TestAskTellsWhetherSomethingIsThere(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{200: "", 404: "NOT_FOUND", 410: "NOT_FOUND", 401: "UNKNOWN", 500: "UNKNOWN", 422: "UNKNOWN"} {
		server, _ := says(t, status, nil, `{}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		_, err = handler.Ask(server.Client(), handler.Request{Key: "k"}, req)
		class, _ := handler.ClassOf(err)
		require.Equal(t, want, class, "status %d", status)
	}
}
