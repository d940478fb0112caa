package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
)

// Options of a pipeline. The zero value is the shipped destinations on a database of testkit's, with no addresses for them.
type Options struct {
	// Sim gives the destinations' addresses. Nil: Env has them.
	Sim *Sim
	// Destinations is the folder of destination files. Empty: the shipped ones.
	Destinations string
	// Embedded lets the child run its own PostgreSQL, which dies with it.
	Embedded bool
	// Batch is the most claims or results of one transaction. Zero: the program's default.
	Batch int
	// Partitions of new topics. Zero: the program's default.
	Partitions int
	// Args are further flags.
	Args []string
	// Env is NAME=value for every run.
	Env []string
	// Failpoints of the first run, as in EBB_FAILPOINTS. Later runs: Restart("EBB_FAILPOINTS=…").
	Failpoints string
	// NoWait returns before the child is ready; AwaitReady waits for that.
	NoWait bool
}

// Ebb is a pipeline in one child process (`ebb up`), or its infrastructure alone (`ebb infra`).
type Ebb struct {
	*Process
	t     testing.TB
	opts  Options
	data  string
	slot  string
	dsn   string // empty for an embedded database
	roles bool   // infrastructure only: roles are processes of their own
	http  *http.Client

	mu    sync.Mutex
	pools map[string]*pgxpool.Pool
}

// Start starts `ebb up` and waits until it is ready.
func Start(t testing.TB, o Options) *Ebb {
	t.Helper()
	return start(t, o, false)
}

// StartInfra starts `ebb infra` for roles in processes of their own, and applies the destination files.
func StartInfra(t testing.TB, o Options) *Ebb {
	t.Helper()
	e := start(t, o, true)
	if !o.NoWait {
		e.ApplyDestinations()
	}
	return e
}

func start(t testing.TB, o Options, roles bool) *Ebb {
	t.Helper()
	if o.Destinations == "" {
		o.Destinations = ShippedDestinations(t)
	}
	e := &Ebb{t: t, opts: o, roles: roles, slot: "ebb_outbox", http: client(t), pools: map[string]*pgxpool.Pool{}}
	if !o.Embedded {
		e.dsn, e.slot = testkit.DB(t), testkit.Name(t, "slot")
	}
	e.data = e.folder()
	env := slices.Clone(o.Env)
	if o.Sim != nil {
		env = append(env, o.Sim.URLs()...)
	}
	e.Process = newProcess(t, e.command(), e.args(), env)
	t.Cleanup(e.closePools) // before the database goes
	var once []string
	if o.Failpoints != "" {
		once = append(once, "EBB_FAILPOINTS="+o.Failpoints)
	}
	e.start(once...)
	if !o.NoWait {
		e.AwaitReady()
	}
	return e
}

func (e *Ebb) command() string {
	if e.roles {
		return "infra"
	}
	return "up"
}

func (e *Ebb) args() []string {
	args := []string{e.command(), "--data", e.data, "--slot", e.slot}
	if e.dsn != "" {
		args = append(args, "--postgres", e.dsn)
	}
	if e.opts.Partitions > 0 {
		args = append(args, "--partitions", strconv.Itoa(e.opts.Partitions))
	}
	if !e.roles {
		args = append(args, "--no-sim", "--http", "127.0.0.1:0", "--destinations", e.opts.Destinations)
		if e.opts.Batch > 0 {
			args = append(args, "--batch", strconv.Itoa(e.opts.Batch))
		}
	}
	return append(args, e.opts.Args...)
}

// folder is one that the account of an embedded database can enter. It goes once that database has ended.
func (e *Ebb) folder() string {
	dir, err := os.MkdirTemp("", "ebb-test-data-")
	require.NoError(e.t, err)
	require.NoError(e.t, os.Chmod(dir, 0o755))
	e.t.Cleanup(func() {
		if e.opts.Embedded {
			e.awaitPostgresEnd()
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

// Restart starts the child again on the same data and waits until it is ready. env holds for this run only.
func (e *Ebb) Restart(env ...string) {
	e.t.Helper()
	e.Launch(env...)
	e.AwaitReady()
}

// Launch is Restart without the wait.
func (e *Ebb) Launch(env ...string) {
	e.t.Helper()
	e.start(env...)
}

// Addresses is what run.json says.
type Addresses struct {
	PID      int      `json:"pid"`
	HTTP     string   `json:"http"`
	DSN      string   `json:"dsn"`
	Brokers  []string `json:"brokers"`
	Registry []string `json:"registry"`
	Postgres string   `json:"postgresDataDir"`
}

// Addresses reads run.json; ok is false before the newest run has written it.
func (e *Ebb) Addresses() (a Addresses, ok bool) {
	text, err := os.ReadFile(filepath.Join(e.data, "run.json"))
	if err != nil || json.Unmarshal(text, &a) != nil {
		return a, false
	}
	return a, a.PID == e.PID()
}

// API is the base URL of the order API, as far as it is known.
func (e *Ebb) API() string {
	a, _ := e.Addresses()
	return a.HTTP
}

// Data is the data folder.
func (e *Ebb) Data() string { return e.data }

// Destinations is the folder of destination files.
func (e *Ebb) Destinations() string { return e.opts.Destinations }

// Slot is the name of the replication slot.
func (e *Ebb) Slot() string { return e.slot }

// AwaitReady waits until the newest run is ready. Its death before that is a failure.
func (e *Ebb) AwaitReady() {
	e.t.Helper()
	e.await(func() (bool, string) {
		a, ok := e.Addresses()
		switch {
		case !ok:
			return false, "no addresses in run.json yet"
		case e.roles:
			return true, ""
		}
		return ready(e.http, a.HTTP)
	})
	e.resetPools()
}

// ready asks a role whether it is.
func ready(c *http.Client, base string) (bool, string) {
	if base == "" {
		return false, "its address is not known yet"
	}
	resp, err := c.Get(base + "/readyz")
	if err != nil {
		return false, err.Error()
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(resp.Body)
	return resp.StatusCode == http.StatusOK, "not ready: " + b.String()
}

// client is an HTTP client whose connections end with the test.
func client(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// DSN of the pipeline's database.
func (e *Ebb) DSN() string {
	if e.dsn != "" {
		return e.dsn
	}
	a, _ := e.Addresses()
	return a.DSN
}

// DB gives a pool on the pipeline's database: schemas ebb (the journal) and orders.
func (e *Ebb) DB() *pgxpool.Pool {
	e.t.Helper()
	dsn := e.DSN()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pools[dsn] == nil {
		pool, err := pgxpool.New(e.t.Context(), dsn)
		require.NoError(e.t, err)
		e.pools[dsn] = pool
	}
	return e.pools[dsn]
}

// resetPools lets go of connections to a database that may have ended with the run before.
func (e *Ebb) resetPools() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.pools {
		p.Reset()
	}
}

func (e *Ebb) closePools() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.pools {
		p.Close()
	}
}

// CLI runs a short command on this pipeline, such as CLI("saga", "retry", id, "billing", "do", "--reason", "healed"), and gives what
// it printed and its exit code.
func (e *Ebb) CLI(args ...string) (out string, code int) {
	e.t.Helper()
	cmd := exec.Command(Build(e.t), append(args, "--data", e.data)...)
	cmd.Env = append(os.Environ(), e.env...)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(e.t, err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// ApplyDestinations registers the destination files, as `ebb up` does by itself.
func (e *Ebb) ApplyDestinations() {
	e.t.Helper()
	out, code := e.CLI("config", "apply", e.opts.Destinations)
	require.Zero(e.t, code, out)
}

// PostgresPID is the process of the embedded database, 0 if there is none.
func (e *Ebb) PostgresPID() int {
	a, _ := e.Addresses()
	if a.Postgres == "" {
		return 0
	}
	for _, path := range []string{filepath.Join(a.Postgres, "data", "postmaster.pid"), filepath.Join(a.Postgres, "postmaster.pid")} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if pid, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && syscall.Kill(pid, 0) == nil {
			return pid
		}
	}
	return 0
}

// KillWithPostgres ends the child and its embedded database with SIGKILL, as close together as two signals can be.
func (e *Ebb) KillWithPostgres() {
	if pid := e.PostgresPID(); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	e.Kill()
	e.awaitPostgresEnd() // a process that is killed keeps its number until its parent has noticed
}

// awaitPostgresEnd waits until the supervisor has stopped the database of a child that is gone.
func (e *Ebb) awaitPostgresEnd() {
	testkit.Eventually(e.t, func() (bool, string) { return e.PostgresPID() == 0, "the embedded database has not ended" }, patience)
}
