package kafkarun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// BrokerConfig configures the embedded broker.
type BrokerConfig struct {
	// DataDir holds records, topics, groups and the port. Made if missing.
	// Required: without it every record would stay in memory.
	DataDir string

	// Addr to listen on, a loopback address. Zero: "127.0.0.1:0". Port 0 takes
	// the port of the last start if it is free, and else any.
	Addr string

	// Sync makes every acknowledged record survive a power cut, at about a
	// millisecond each. False: it survives kill -9 of the process.
	Sync bool

	// Logger. Nil: nothing is logged.
	Logger *slog.Logger
}

func (c BrokerConfig) withDefaults() BrokerConfig {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c BrokerConfig) validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("setting DataDir is missing"))
	}
	return errors.Join(append(errs, checkLoopback(c.Addr))...)
}

// Broker is a running broker of one node.
type Broker struct {
	addr    string
	cluster *kfake.Cluster
	reaper  *reaper
	lock    *os.File

	closing  sync.Once
	closeErr error
}

// StartBroker starts a broker; it is ready when the call returns. It runs
// until Close. See [PortTakenError] and [InUseError].
func StartBroker(cfg BrokerConfig) (*Broker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	b, err := startBroker(cfg)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	cfg.Logger.Debug("kafkarun: broker started", "addr", b.addr, "data_dir", cfg.DataDir)
	return b, nil
}

func startBroker(cfg BrokerConfig) (*Broker, error) {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(cfg.DataDir, "lock"))
	if err != nil {
		return nil, err
	}
	ln, err := listen(cfg.Addr, filepath.Join(cfg.DataDir, "port"), cfg.Logger)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.DataDir(filepath.Join(cfg.DataDir, "log")),
		// The listener is opened here, so that a taken port is ours to report.
		kfake.ListenFn(func(string, string) (net.Listener, error) { return ln, nil }),
		kfake.WithLogger(brokerLog{cfg.Logger}),
	}
	if cfg.Sync {
		opts = append(opts, kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		_ = ln.Close()
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", cfg.DataDir, err), lock.Close())
	}
	addr := ln.Addr().String()
	reaper, err := startReaper(cluster, addr, time.Second, cfg.Logger)
	if err != nil {
		cluster.Close()
		return nil, errors.Join(err, lock.Close())
	}
	return &Broker{addr: addr, cluster: cluster, reaper: reaper, lock: lock}, nil
}

// Addr is the host:port that clients connect to.
func (b *Broker) Addr() string { return b.addr }

// Close stops the broker and flushes its files. It can be called repeatedly.
func (b *Broker) Close() error {
	b.closing.Do(func() {
		b.reaper.close()
		b.cluster.Close()
		b.closeErr = b.lock.Close()
	})
	return b.closeErr
}

// brokerLog passes on what the broker finds wrong. Its lesser messages are one
// line per request.
type brokerLog struct{ log *slog.Logger }

func (l brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	var to slog.Level
	switch level {
	case kfake.LogLevelError:
		to = slog.LevelError
	case kfake.LogLevelWarn:
		to = slog.LevelWarn
	default:
		return
	}
	if l.log.Enabled(context.Background(), to) {
		l.log.Log(context.Background(), to, "kafkarun: broker", "message", fmt.Sprintf(format, args...))
	}
}
