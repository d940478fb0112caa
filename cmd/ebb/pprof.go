package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/ebbline/ebb/internal/lifecycle"
)

// listenPprof opens the address of the profiles. A profile shows memory and arguments, so it is for this machine only.
func listenPprof(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--pprof %s: give HOST:PORT, such as 127.0.0.1:6060: %w", addr, err)}
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &usageError{fmt.Errorf("--pprof %s: profiles are served on loopback only, such as 127.0.0.1:6060", addr)}
	}
	return lifecycle.Listen(ctx, addr, "--pprof")
}

// profiles has the handlers of net/http/pprof on a mux of its own: the API must not show them.
func profiles() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
