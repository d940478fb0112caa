package postgresrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	fastFor = 30 * time.Second // patience with a fast shutdown: it writes a checkpoint
	quitFor = 10 * time.Second // patience with an immediate shutdown, and with SIGKILL
)

// Server is a running PostgreSQL server. Its methods are safe for concurrent use.
type Server struct {
	folder   folder
	port     int
	password string
	major    int

	owner    *os.File // the owner lock
	lifeline *os.File // closing it is the request to shut down
	stopOnce sync.Once

	stopping chan struct{} // closed by Stop
	done     chan struct{} // closed when server and supervisor have ended
	err      error         // set before done is closed
}

// Start runs a server on cfg.DataDir and returns when it takes connections. It makes the cluster at the first start,
// and waits for a previous server on the same folder that is still shutting down. Cancelling ctx ends the start, not a
// server that has started; use Stop for that.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if !hooked.Load() {
		return nil, ErrNotHooked
	}
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	f := folder{path: who.place(cfg.DataDir), who: who}
	if f.path != cfg.DataDir {
		cfg.Logger.InfoContext(ctx, "postgresrun: the server's user cannot enter the data folder, using a system folder",
			"user", who.name, "asked", cfg.DataDir, "data_dir", f.path)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	var seen seen
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, cfg, f, &seen)
		if err == nil {
			cfg.Logger.InfoContext(ctx, "postgresrun: PostgreSQL is ready",
				"major", s.major, "port", s.port, "data_dir", f.path)
			return s, nil
		}
		if !worthRetrying(ctx, cfg, err, attempt) {
			return nil, fmt.Errorf("start PostgreSQL: %w", err)
		}
	}
}

// worthRetrying knows two ends of a start that pass: a chosen port that was taken meanwhile, and processes of a killed
// server that have not noticed its end yet and still hold its shared memory.
func worthRetrying(ctx context.Context, cfg Config, err error, attempt int) bool {
	switch {
	case errors.Is(err, errPortLost):
		return cfg.Port == 0 && attempt < 5
	case errors.Is(err, errRemains):
		_, waitErr := waitUntil(ctx, 200*time.Millisecond, func() bool { return false })
		return waitErr == nil && attempt < 50
	}
	return false
}

// errPortLost says that another process took the chosen port between our look and the server's bind.
var errPortLost = errors.New("the chosen port was taken meanwhile")

// errRemains says that the server did not start after one that had been killed.
var errRemains = errors.New("processes of the killed server may not have ended yet")

// seen carries what one attempt has found to the next.
type seen struct {
	portLost bool // the remembered port is no good
	unclean  bool // the previous server was killed
}

func start(ctx context.Context, cfg Config, f folder, seen *seen) (*Server, error) {
	if err := f.prepare(); err != nil {
		return nil, err
	}
	owner, err := f.lockOwner()
	if err != nil {
		return nil, err
	}
	s, err := startOwned(ctx, cfg, f, owner, seen)
	if err != nil {
		_ = owner.Close()
		return nil, err
	}
	return s, nil
}

func startOwned(ctx context.Context, cfg Config, f folder, owner *os.File, seen *seen) (*Server, error) {
	unclean, err := f.clearPrevious(ctx, cfg)
	if err != nil {
		return nil, err
	}
	seen.unclean = seen.unclean || unclean
	if cfg.Fresh {
		if err := os.RemoveAll(f.pgdata()); err != nil {
			return nil, fmt.Errorf("remove the previous cluster: %w", err)
		}
	}
	inst, password, err := readyCluster(ctx, cfg, f)
	if err != nil {
		return nil, err
	}
	port, err := choosePort(cfg, f, seen.portLost)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(rotateLog(f.log()), f.configure(cfg, port), f.write("port", strconv.Itoa(port)+"\n")); err != nil {
		return nil, err
	}
	s := &Server{folder: f, port: port, password: password, major: inst.major, owner: owner,
		stopping: make(chan struct{}), done: make(chan struct{})}
	if err := s.launch(cfg, inst); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx); err != nil {
		s.abandon()
		var exit *ExitError
		switch {
		case errors.As(err, &exit) && !portIsFree(port):
			seen.portLost = true
			return nil, errors.Join(errPortLost, err)
		case errors.As(err, &exit) && seen.unclean:
			return nil, errors.Join(errRemains, err)
		}
		return nil, err
	}
	return s, nil
}

// readyCluster finds the server to run and makes the cluster if there is none.
func readyCluster(ctx context.Context, cfg Config, f folder) (installation, string, error) {
	major, err := f.major()
	if err != nil {
		return installation{}, "", err
	}
	inst, missing := find(ctx, cfg.BinDir, major)
	if err := ctx.Err(); err != nil {
		return installation{}, "", err // what was not found was perhaps not looked at
	}
	if missing != nil {
		if cfg.NoFetch || cfg.BinDir != "" {
			return installation{}, "", missing
		}
		if inst, err = fetch(ctx, cfg, f.who, major); err != nil {
			missing.Fetch = err
			return installation{}, "", missing
		}
	}
	password, err := f.password()
	if err != nil {
		return installation{}, "", err
	}
	if major == 0 {
		if err := f.initdb(ctx, inst, cfg.Sync); err != nil {
			return installation{}, "", err
		}
	}
	return inst, password, nil
}

// choosePort gives the configured port, else the remembered one if it is free, else any free one.
func choosePort(cfg Config, f folder, fresh bool) (int, error) {
	if cfg.Port != 0 {
		if !portIsFree(cfg.Port) {
			return 0, fmt.Errorf("port %d of 127.0.0.1 is taken: stop what listens there, or choose another port", cfg.Port)
		}
		return cfg.Port, nil
	}
	if text, err := os.ReadFile(f.file("port")); err == nil && !fresh {
		port, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && port > 0 && port < 65536 && portIsFree(port) {
			return port, nil
		}
	}
	return freePort()
}

func portIsFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// launch starts the supervisor, which starts the server.
func (s *Server) launch(cfg Config, inst installation) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own executable: %w", err)
	}
	log, err := os.OpenFile(s.folder.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	orders, lifeline, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make the lifeline: %w", err)
	}
	defer func() { _ = orders.Close() }()
	report, reporting, err := os.Pipe()
	if err != nil {
		_ = lifeline.Close()
		return fmt.Errorf("make the report pipe: %w", err)
	}
	defer func() { _ = report.Close() }()

	cmd := exec.Command(exe)
	cmd.Args = []string{"ebb-postgres-supervisor"}
	cmd.Env = append(serverEnv(), superviseEnv+"=1")
	// Nothing of ours is inherited: who reads our output must not wait for the server's end to see the end of it.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = orders, reporting, log
	cmd.SysProcAttr = detached()
	err = cmd.Start()
	_ = reporting.Close()
	if err != nil {
		_ = lifeline.Close()
		return fmt.Errorf("start the supervisor: %w", err)
	}
	s.lifeline = lifeline
	go s.watch(cmd)

	o := order{
		Postgres: inst.tool("postgres"), PGData: s.folder.realPGData(), Log: s.folder.log(),
		Drop: s.folder.who.drop, UID: s.folder.who.uid, GID: s.folder.who.gid,
		FastFor: fastFor, QuitFor: quitFor, Immediate: cfg.Ephemeral,
	}
	if cfg.Ephemeral {
		o.Remove = s.folder.path
	}
	var st started
	err = json.NewEncoder(lifeline).Encode(o)
	if err == nil {
		err = json.NewDecoder(report).Decode(&st)
	}
	if err == nil && st.Error != "" {
		err = errors.New(st.Error)
	}
	if err != nil {
		s.abandon()
		return fmt.Errorf("start the server under its supervisor: %w", err)
	}
	return nil
}

// watch collects the supervisor. If it was killed, the server may still run: it is asked to stop as an orphan.
func (s *Server) watch(cmd *exec.Cmd) {
	waitErr := cmd.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), fastFor+2*quitFor)
	defer cancel()
	if pid, _ := s.folder.postmasterState(); s.folder.runs(ctx, pid) {
		_ = s.folder.endOrphan(ctx, pid)
	}
	select {
	case <-s.stopping:
		if waitErr != nil {
			s.err = s.exitError("stop", cmd)
		}
	default:
		s.err = s.exitError("run", cmd)
	}
	_ = s.owner.Close()
	close(s.done)
}

func (s *Server) exitError(op string, cmd *exec.Cmd) error {
	text, _ := os.ReadFile(s.folder.log())
	return &ExitError{Op: op, Status: cmd.ProcessState.String(), Log: s.folder.log(), Tail: tail(string(text), 15)}
}

// awaitReady waits until the server takes connections, which includes recovery after a crash, and proves it with one.
func (s *Server) awaitReady(ctx context.Context) error {
	for {
		ready, err := waitUntil(ctx, time.Second, func() bool {
			select {
			case <-s.done:
				return true
			default:
				_, status := s.folder.postmasterState()
				return status == "ready"
			}
		})
		if err != nil {
			return fmt.Errorf("server on port %d is not ready: %w (see %s)", s.port, err, s.folder.log())
		}
		if ready {
			break
		}
	}
	select {
	case <-s.done:
		var exit *ExitError
		if errors.As(s.err, &exit) {
			exit.Op = "start"
		}
		return s.err
	default:
	}
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the started server: %w", err)
	}
	return conn.Close(ctx)
}

// abandon ends a server that did not come up.
func (s *Server) abandon() {
	s.requestStop()
	<-s.done
}

func (s *Server) requestStop() {
	s.stopOnce.Do(func() {
		close(s.stopping)
		_ = s.lifeline.Close()
	})
}

// DSN is the connection string of a database on this server, password included, over TCP.
func (s *Server) DSN(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(Role, s.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// DataDir is where the server's files are: the folder asked for, or the system folder that replaces it.
func (s *Server) DataDir() string { return s.folder.path }

// Port is the TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Major is the release of the server.
func (s *Server) Major() int { return s.major }

// Done is closed when the server has ended, asked or not.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is nil while the server runs and after an end that Stop asked for; else an *ExitError.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop shuts the server down, rolling back what is open, and waits for its end. It may be called more than once. If
// ctx ends first the shutdown goes on by itself.
func (s *Server) Stop(ctx context.Context) error {
	s.requestStop()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("postgres on %s is still shutting down: %w", s.folder.path, ctx.Err())
	}
}

// maxLog is the size at which the log of earlier starts is set aside.
const maxLog = 16 << 20

func rotateLog(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() < maxLog {
		return nil // none yet, or small
	}
	if err := os.Rename(path, path+".1"); err != nil {
		return fmt.Errorf("rotate the server's log: %w", err)
	}
	return nil
}
