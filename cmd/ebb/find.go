package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// runFile is .ebb/run.json: where the parts of a running `ebb up` are.
type runFile struct {
	PID      int      `json:"pid"`
	HTTP     string   `json:"http,omitempty"`
	Sim      string   `json:"sim,omitempty"`
	DSN      string   `json:"dsn"`
	Brokers  []string `json:"brokers"`
	Registry []string `json:"registry"`
	Postgres string   `json:"postgresDataDir,omitempty"`

	path string
}

func runPath(data string) string { return filepath.Join(data, "run.json") }

// write replaces the file in one step, readable for its owner only: the connection string holds a password.
func (r runFile) write(data string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp := runPath(data) + ".tmp"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, runPath(data))
}

func readRunFile(path string) (runFile, error) {
	r := runFile{path: path}
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w; remove it and start `ebb up` again", path, err)
	}
	return r, nil
}

// ended tells whether the process that wrote the file is gone; what it started may live on.
func (r runFile) ended() bool {
	return r.PID > 0 && errors.Is(syscall.Kill(r.PID, 0), syscall.ESRCH)
}

// hint says what may be wrong with addresses that came from the file.
func (r runFile) hint() string {
	switch {
	case r.path == "":
		return ""
	case r.ended():
		return fmt.Sprintf("; the address is from %s, whose process %d has ended: start `ebb up` again", r.path, r.PID)
	}
	return "; the address is from " + r.path
}

// place is the data folder in which a running Ebb is looked for.
type place struct {
	Data string `help:"Folder of a running ebb up or ebb infra to take missing addresses from; by default also the .ebb of the folders above." default:".ebb" env:"EBB_DATA" type:"path"`
}

// find reads the run file of the data folder; for the default one also that of the folders above, if it is the user's own. Without
// any, the zero value.
func (p place) find() (runFile, error) {
	r, err := readRunFile(runPath(p.Data))
	if !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	here, err := os.Getwd()
	if err != nil || p.Data != filepath.Join(here, ".ebb") {
		return runFile{}, nil
	}
	for dir := filepath.Dir(here); ; dir = filepath.Dir(dir) {
		path := runPath(filepath.Join(dir, ".ebb"))
		// A file of somebody else's, say in /tmp, must not choose where orders are sent.
		if info, err := os.Stat(path); err == nil && owned(info) {
			return readRunFile(path)
		}
		if dir == filepath.Dir(dir) {
			return runFile{}, nil
		}
	}
}

func owned(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}

// missing says both ways to give an address.
func (p place) missing(flag, variable string) error {
	return &usageError{fmt.Errorf("no address: no running Ebb is named in %s%s, and %s is not set; start `ebb up`, set %s, or use %s",
		runPath(p.Data), p.above(), variable, variable, flag)}
}

func (p place) above() string {
	if here, err := os.Getwd(); err == nil && p.Data == filepath.Join(here, ".ebb") {
		return " or in a folder above"
	}
	return ""
}

// orderPlace says where the order API is.
type orderPlace struct {
	place
	URL string `help:"Order API, such as http://127.0.0.1:8080." env:"EBB_URL" placeholder:"URL" name:"url"`
}

// simPlace says where the simulated destinations are.
type simPlace struct {
	place
	URL string `help:"Simulated destinations, such as http://127.0.0.1:8090." env:"EBB_SIM_URL" placeholder:"URL" name:"url"`
}
