package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Ops answers /healthz, /readyz and /metrics. The zero value is not ready for use; make it with NewOps.
type Ops struct {
	// Registry takes the role's metrics.
	Registry *prometheus.Registry

	mu     sync.Mutex
	checks map[string]func(ctx context.Context) error
}

// NewOps makes an Ops with the metrics of the Go runtime and the process.
func NewOps() *Ops {
	o := &Ops{Registry: prometheus.NewRegistry(), checks: map[string]func(context.Context) error{}}
	o.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return o
}

// Check adds something that must be well for the role to be ready.
func (o *Ops) Check(name string, check func(ctx context.Context) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checks[name] = check
}

// Routes adds the endpoints to a mux. /healthz says that the process runs; /readyz that everything it needs does.
func (o *Ops) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", o.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{Registry: o.Registry}))
}

func (o *Ops) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	o.mu.Lock()
	checks := maps.Clone(o.checks)
	o.mu.Unlock()
	// Side by side: one that uses up the time must not make the others look ill.
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		status = http.StatusOK
		out    = map[string]string{}
	)
	for name, check := range checks {
		all.Go(func() {
			err := check(ctx)
			mu.Lock()
			defer mu.Unlock()
			out[name] = "ok"
			if err != nil {
				status, out[name] = http.StatusServiceUnavailable, err.Error()
			}
		})
	}
	all.Wait()
	answer(w, status, out)
}

func answer(w http.ResponseWriter, status int, body map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// TakenError says that an address is in use, and which flag chooses another.
type TakenError struct {
	Addr string
	Flag string
	Err  error
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("cannot listen on %s: %v; choose another address with %s", e.Addr, errors.Unwrap(e.Err), e.Flag)
}

func (e *TakenError) Unwrap() error { return e.Err }

// Listen opens a listener; the error names the flag that chooses the address.
func Listen(ctx context.Context, addr, flag string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &TakenError{Addr: addr, Flag: flag, Err: err}
	}
	return ln, nil
}

// readTimeout is the longest that a client takes to send a request: more would hold a connection for nothing.
const readTimeout = time.Minute

func server(h http.Handler, read time.Duration) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: min(10*time.Second, read), ReadTimeout: read, IdleTimeout: 2 * time.Minute}
}

// Serve answers on the listener until ctx ends, and then lets requests in flight end for at most grace.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, grace time.Duration) error {
	srv := server(h, readTimeout)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		_ = srv.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
