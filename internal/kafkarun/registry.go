package kafkarun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// RegistryConfig configures the embedded schema registry.
type RegistryConfig struct {
	// Path of the file that holds every change. Made if missing, its folder
	// too. Required.
	Path string

	// Addr to listen on, a loopback address. Zero: "127.0.0.1:0". Port 0 takes
	// the port of the last start if it is free, and else any.
	Addr string

	// Compatibility of subjects that have no setting of their own. Zero:
	// FULL_TRANSITIVE.
	Compatibility sr.CompatibilityLevel

	// Logger. Nil: nothing is logged.
	Logger *slog.Logger
}

func (c RegistryConfig) withDefaults() RegistryConfig {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.Compatibility == 0 {
		c.Compatibility = sr.CompatFullTransitive
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c RegistryConfig) validate() error {
	var errs []error
	if c.Path == "" {
		errs = append(errs, errors.New("setting Path is missing"))
	}
	if c.Compatibility.String() == "" {
		errs = append(errs, fmt.Errorf("setting Compatibility: %d is not a level", c.Compatibility))
	}
	return errors.Join(append(errs, checkLoopback(c.Addr))...)
}

// Registry is a running schema registry.
type Registry struct {
	url    string
	server *http.Server
	served chan struct{} // closed when Serve has returned
	lock   *os.File
	gate   *gate

	closing  sync.Once
	closeErr error
}

// StartRegistry starts a registry with everything its file holds; it is ready
// when the call returns. It runs until Close. See [PortTakenError],
// [InUseError] and [CorruptError].
func StartRegistry(cfg RegistryConfig) (*Registry, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("embedded schema registry: %w", err)
	}
	r, err := startRegistry(cfg)
	if err != nil {
		return nil, fmt.Errorf("embedded schema registry: %w", err)
	}
	cfg.Logger.Debug("kafkarun: schema registry started", "url", r.url, "path", cfg.Path)
	return r, nil
}

func startRegistry(cfg RegistryConfig) (*Registry, error) {
	if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFile(cfg.Path + ".lock")
	if err != nil {
		return nil, err
	}
	fake := srfake.NewRegistry(srfake.WithGlobalCompat(cfg.Compatibility))
	g, err := newGate(fake.Handler(), cfg.Path, cfg.Logger)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	ln, err := listen(cfg.Addr, cfg.Path+".port", cfg.Logger)
	if err != nil {
		return nil, errors.Join(err, g.close(), lock.Close())
	}
	r := &Registry{
		url: "http://" + ln.Addr().String(), lock: lock, gate: g, served: make(chan struct{}),
		server: &http.Server{
			Handler: g, ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		},
	}
	go r.serve(ln, cfg.Logger)
	return r, nil
}

func (r *Registry) serve(ln net.Listener, log *slog.Logger) {
	defer close(r.served)
	if err := r.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		log.Error("kafkarun: schema registry stopped", "error", err)
	}
}

// URL is the base URL for clients.
func (r *Registry) URL() string { return r.url }

// closeGrace is how long Close waits for requests under way.
const closeGrace = 5 * time.Second

// Close stops the registry. It can be called repeatedly.
func (r *Registry) Close() error {
	r.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		err := r.server.Shutdown(ctx)
		if err != nil {
			err = r.server.Close()
		}
		<-r.served
		r.closeErr = errors.Join(err, r.gate.close(), r.lock.Close())
	})
	return r.closeErr
}
