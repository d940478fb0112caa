package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ebbline/ebb/schemas"
)

// ebb is a running `ebb up` on a database of its own.
type ebb struct {
	cmd  *exec.Cmd
	db   *database
	log  string
	done chan struct{} // closed when the process has ended

	addresses struct {
		HTTP     string   `json:"http"`
		Brokers  []string `json:"brokers"`
		Registry []string `json:"registry"`
	}
	registry *schemas.Client
	codec    *schemas.Codec
}

// ebbOptions choose what differs between runs.
type ebbOptions struct {
	partitions   int
	destinations string // folder of destination files; empty: those that ship
	pprof        string // address of the profiles; empty: none
	postgres     string // address to reach PostgreSQL at instead of its own
}

// build makes the binary from the tree that this module belongs to.
func build(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/ebbline/ebb").Output()
	if err != nil {
		return "", fmt.Errorf("find the tree to build, run this in the folder bench or give --ebb FILE: %w", err)
	}
	binary := filepath.Join(dir, "ebb")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/ebb")
	cmd.Dir = strings.TrimSpace(string(out))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build ebb: %w", err)
	}
	return binary, nil
}

// startEbb runs `ebb up` and returns when it is ready.
func (b *bench) startEbb(ctx context.Context, o ebbOptions) (*ebb, error) {
	db, err := b.server.create(ctx, "ebb", b.flags.Clients+4)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(b.dir, db.name)
	dsn := db.dsn
	if o.postgres != "" {
		dsn = strings.Replace(dsn, b.server.addr(), o.postgres, 1)
	}
	args := []string{"--log-level", "warn", "up", "--no-sim", "--sync", "--postgres", dsn, "--data", data, "--slot", db.name,
		"--http", "127.0.0.1:0", "--partitions", fmt.Sprint(o.partitions)}
	if o.destinations != "" {
		args = append(args, "--destinations", o.destinations)
	}
	if o.pprof != "" {
		args = append(args, "--pprof", o.pprof)
	}
	e := &ebb{cmd: exec.Command(b.binary, args...), db: db, log: data + ".log", done: make(chan struct{})}
	for _, name := range []string{"INVENTORY", "FRAUDCHECK", "SHIPPING", "BILLING", "NOTIFICATIONS", "NOTE"} {
		e.cmd.Env = append(e.cmd.Env, name+"_URL="+b.api.url)
	}
	e.cmd.Env = append(os.Environ(), e.cmd.Env...)
	log, err := os.Create(e.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	e.cmd.Stdout, e.cmd.Stderr = log, log
	if err := e.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start ebb: %w", err)
	}
	go func() {
		_ = e.cmd.Wait()
		close(e.done)
	}()
	if err := e.ready(ctx, filepath.Join(data, "run.json")); err != nil {
		return nil, errors.Join(err, e.stop(ctx))
	}
	return e, nil
}

// ready waits until ebb answers, and connects to its registry.
func (e *ebb) ready(ctx context.Context, runFile string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !e.answers(ctx, runFile) {
		select {
		case <-tick.C:
		case <-e.done:
			return e.failure("ebb up ended")
		case <-ctx.Done():
			return e.failure("ebb up is not ready")
		}
	}
	var err error
	if e.registry, err = schemas.NewClient(schemas.ClientConfig{URLs: e.addresses.Registry}); err != nil {
		return err
	}
	e.codec = schemas.NewCodec(e.registry)
	return e.registry.Warm(ctx)
}

func (e *ebb) answers(ctx context.Context, runFile string) bool {
	text, err := os.ReadFile(runFile)
	if err != nil || json.Unmarshal(text, &e.addresses) != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.addresses.HTTP+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// failure adds the end of ebb's log.
func (e *ebb) failure(what string) error {
	text, _ := os.ReadFile(e.log)
	return fmt.Errorf("%s; its log ends with:\n%s", what, text[max(0, len(text)-2000):])
}

// stop ends the process in order and drops its database.
func (e *ebb) stop(ctx context.Context) error {
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	patience := time.NewTimer(30 * time.Second)
	defer patience.Stop()
	select {
	case <-e.done:
	case <-patience.C:
		_ = e.cmd.Process.Kill()
		<-e.done
	}
	if e.registry != nil {
		e.registry.Close()
	}
	return e.db.drop(ctx)
}
