package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProfilesStayOnLoopback(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:6060", "example.org:6060", ":6060", "6060"} {
		_, err := listenPprof(t.Context(), addr)
		var usage *usageError
		require.ErrorAs(t, err, &usage, addr)
		require.ErrorContains(t, err, "--pprof", addr)
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		ln, err := listenPprof(t.Context(), addr)
		require.NoError(t, err, addr)
		require.NoError(t, ln.Close())
	}
}

func TestProfilesAreServed(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline"} {
		w := httptest.NewRecorder()
		profiles().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code, path)
	}
}
