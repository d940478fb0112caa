package postgresrun

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// newDir gives a folder that the server's user can enter, which the test framework's own cannot be for root.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ebb-pgrun-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func config(dir string) Config {
	return Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler), Settings: small()}
}

func mustStart(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	var text string
	require.NoError(t, conn.QueryRow(context.Background(), sql).Scan(&text))
	return text
}

func TestStartStopStart(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	cfg := config(dir)
	cfg.Settings["work_mem"] = "7MB"
	s := mustStart(t, cfg)
	require.Equal(t, dir, s.DataDir())
	require.Equal(t, "logical", query(t, s.DSN("postgres"), "SHOW wal_level"))
	require.Equal(t, "on", query(t, s.DSN("postgres"), "SHOW synchronous_commit"))
	require.Equal(t, "off", query(t, s.DSN("postgres"), "SHOW fsync"))
	require.Equal(t, "127.0.0.1", query(t, s.DSN("postgres"), "SHOW listen_addresses"))
	require.Equal(t, "7MB", query(t, s.DSN("postgres"), "SHOW work_mem"))
	query(t, s.DSN("postgres"), "SELECT pg_create_logical_replication_slot('s', 'pgoutput')::text")
	require.NoError(t, s.Err())

	require.NoError(t, s.Stop(context.Background()))
	require.NoError(t, s.Stop(context.Background()), "stopping twice is harmless")
	require.NoError(t, s.Err())

	cfg.Sync = true
	again := mustStart(t, cfg)
	require.Equal(t, s.DSN("x"), again.DSN("x"), "port and password outlive a restart")
	require.Equal(t, "on", query(t, again.DSN("postgres"), "SHOW fsync"))
	require.Equal(t, "1", query(t, again.DSN("postgres"), "SELECT count(*)::text FROM pg_replication_slots"))
}

func TestPasswordIsNeededAndKept(t *testing.T) {
	t.Parallel()
	s := mustStart(t, config(newDir(t)))
	info, err := os.Stat(filepath.Join(s.DataDir(), "password"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = pgx.Connect(context.Background(), strings.Replace(s.DSN("postgres"), s.password, "wrong", 1))
	require.ErrorContains(t, err, "28P01")
}

func TestSecondOwnerIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	mustStart(t, config(dir))
	_, err := Start(context.Background(), config(dir))
	var inUse *InUseError
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, os.Getpid(), inUse.PID)
}

func TestServerThatEndsByItselfIsNoticed(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := mustStart(t, config(dir))
	pid, _ := s.folder.postmasterState()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	<-s.Done()
	var exit *ExitError
	require.ErrorAs(t, s.Err(), &exit)
	require.Equal(t, "run", exit.Op)
	// Its other processes may still hold its memory, and its pid file is still there.
	again := mustStart(t, config(dir))
	require.Equal(t, "1", query(t, again.DSN("postgres"), "SELECT '1'"))
}

func TestEphemeralLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "ebb-pgrun-")
	require.NoError(t, err)
	cfg := config(dir)
	cfg.Ephemeral = true
	s := mustStart(t, cfg)
	require.NoError(t, s.Stop(context.Background()))
	require.NoDirExists(t, dir)
}

// owner is another process that runs a server.
type owner struct {
	cmd *exec.Cmd
	dsn string
}

func startOwner(t *testing.T, dir string) *owner {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), ownerVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	require.Equal(t, "ready", word, rest)
	return &owner{cmd: cmd, dsn: rest}
}

func (o *owner) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, o.cmd.Process.Kill())
	_ = o.cmd.Wait() // "signal: killed"
}

// TestKillOfTheOwnerStopsTheServer kills the program that runs a server, twice: once to see the server go by itself,
// once to start on its folder at once. What was committed is there.
func TestKillOfTheOwnerStopsTheServer(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	f := folder{path: dir}
	o := startOwner(t, dir)
	conn, err := pgx.Connect(context.Background(), o.dsn)
	require.NoError(t, err)
	_, err = conn.Exec(context.Background(), "CREATE TABLE t AS SELECT 1 AS x")
	require.NoError(t, err)
	require.NoError(t, conn.Close(context.Background()))
	pid, _ := f.postmasterState()
	require.True(t, f.runs(context.Background(), pid))
	o.kill(t)
	gone, err := waitUntil(context.Background(), time.Minute, func() bool { return !f.runs(context.Background(), pid) })
	require.NoError(t, err)
	require.True(t, gone)

	o = startOwner(t, dir)
	o.kill(t)
	s := mustStart(t, config(dir))
	require.Equal(t, "1", query(t, s.DSN("postgres"), "SELECT x::text FROM t"))
}

// TestOrphanIsStopped kills owner and supervisor, and keeps the server from noticing: the next start ends it.
func TestOrphanIsStopped(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	f := folder{path: dir}
	o := startOwner(t, dir)
	pid, _ := f.postmasterState()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	o.kill(t)
	require.NoError(t, syscall.Kill(supervisorOf(t, pid), syscall.SIGKILL))
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	s := mustStart(t, config(dir))
	now, _ := f.postmasterState()
	require.NotEqual(t, pid, now)
	require.Equal(t, "1", query(t, s.DSN("postgres"), "SELECT '1'"))
}

func supervisorOf(t *testing.T, pid int) int {
	t.Helper()
	out, err := exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(pid)).Output()
	require.NoError(t, err)
	parent, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	return parent
}

func TestStalePidFileIsRemoved(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := mustStart(t, config(dir))
	require.NoError(t, s.Stop(context.Background()))
	// The number of a living process that is not this server, as after a reboot.
	stale := strconv.Itoa(os.Getpid()) + "\n" + dir + "/data\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), []byte(stale), 0o600))
	mustStart(t, config(dir))
}

func TestInterruptedInitdbIsNotUsed(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data.making", "base"), 0o700))
	s := mustStart(t, config(dir))
	require.NoDirExists(t, filepath.Join(dir, "data.making"))
	require.NoError(t, s.Stop(context.Background()))
}

func TestStartFailureShowsTheLog(t *testing.T) {
	t.Parallel()
	cfg := config(newDir(t))
	cfg.Settings["no_such_setting"] = "1"
	_, err := Start(context.Background(), cfg)
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, "start", exit.Op)
	require.Contains(t, exit.Tail, "no_such_setting")
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	first := mustStart(t, config(newDir(t)))
	cfg := config(newDir(t))
	cfg.Port = first.Port()
	_, err := Start(context.Background(), cfg)
	require.ErrorContains(t, err, strconv.Itoa(first.Port()))

	// A remembered port that someone else has now is given up for a free one.
	cfg.Port = 0
	require.NoError(t, os.WriteFile(filepath.Join(cfg.DataDir, "port"), []byte(strconv.Itoa(first.Port())), 0o600))
	require.NotEqual(t, first.Port(), mustStart(t, cfg).Port())
}
