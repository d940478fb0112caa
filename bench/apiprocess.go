package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/ebbline/ebb/bench/api"
)

// apiProcess is the API server, in a process of its own so that its CPU time can be told apart.
type apiProcess struct {
	url      string
	cmd      *exec.Cmd
	lifeline io.Closer
}

func startAPI(f flags) (*apiProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own executable: %w", err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), apiEnv+"="+f.Latency.String())
	cmd.Stderr = os.Stderr
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the API server did not say its address: %w", err)
	}
	return &apiProcess{url: strings.TrimSpace(line), cmd: cmd, lifeline: lifeline}, nil
}

func (a *apiProcess) stop() {
	_ = a.lifeline.Close()
	_ = a.cmd.Wait()
}

func (a *apiProcess) reset(ctx context.Context) error { return a.ask(ctx, "/reset", nil) }

func (a *apiProcess) stats(ctx context.Context) (api.Stats, error) {
	var s api.Stats
	err := a.ask(ctx, "/stats", &s)
	return s, err
}

func (a *apiProcess) ask(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
