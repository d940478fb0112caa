package postgresrun

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// superviseEnv marks the re-executed binary as a supervisor.
const superviseEnv = "EBB_POSTGRESRUN_SUPERVISE"

// hooked remembers that this binary recognises the mark; see ErrNotHooked.
var hooked atomic.Bool

// order is what the supervisor is told on the first line of its standard input. The rest of that stream is the
// lifeline: its end is the request to shut down.
type order struct {
	Postgres  string
	PGData    string
	Log       string
	Drop      bool
	UID, GID  int
	Remove    string // folder to delete after a shutdown; empty keeps everything
	FastFor   time.Duration
	QuitFor   time.Duration
	Immediate bool // skip the fast shutdown: the data is thrown away
}

// started is the supervisor's only message, on its standard output.
type started struct {
	PID   int
	Error string
}

// MaybeSupervise must be the first call in main, or in TestMain of a test binary that calls Start. In an ordinary run
// it returns at once. In a process that Start made as a supervisor it looks after the server and never returns.
func MaybeSupervise() {
	hooked.Store(true)
	if os.Getenv(superviseEnv) == "" {
		return
	}
	if err := supervise(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "postgresrun supervisor:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func supervise(lifeline io.Reader, report io.Writer) error {
	// The parent decides when to end. A signal sent to the whole group must not take the server away from clients that
	// are still finishing, and a dead parent must not kill us on the next report.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	// The parent-death signal is bound to the thread that started the server.
	runtime.LockOSThread()

	in := bufio.NewReader(lifeline)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	cmd, err := startServer(o)
	if err != nil {
		_ = json.NewEncoder(report).Encode(started{Error: err.Error()})
		return err
	}
	_ = json.NewEncoder(report).Encode(started{PID: cmd.Process.Pid})

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	parentGone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(parentGone)
	}()

	var result error
	select {
	case err := <-ended:
		return err // unasked; the folder stays for whoever looks for the reason
	case <-parentGone:
		result = shutDown(cmd.Process, o, ended)
	}
	if o.Remove != "" {
		if err := os.RemoveAll(o.Remove); err != nil {
			return errors.Join(result, fmt.Errorf("remove the data folder: %w", err))
		}
	}
	return result
}

func startServer(o order) (*exec.Cmd, error) {
	log, err := os.OpenFile(o.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(o.Postgres, "-D", o.PGData)
	cmd.Dir = o.PGData
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = serverAttr(account{drop: o.Drop, uid: o.UID, gid: o.GID})
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Postgres, err)
	}
	return cmd, nil
}

// serverEnv is small on purpose: PG* variables and secrets of ours are none of the server's business.
func serverEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}

// shutDown asks with growing force. A fast shutdown rolls back open transactions and writes a checkpoint; an immediate
// one leaves the rest to crash recovery. Both lose nothing that was committed.
func shutDown(p *os.Process, o order, ended <-chan error) error {
	steps := []struct {
		signal   os.Signal
		patience time.Duration
	}{
		{syscall.SIGINT, o.FastFor},
		{syscall.SIGQUIT, o.QuitFor},
		{syscall.SIGKILL, o.QuitFor},
	}
	if o.Immediate {
		steps = steps[1:]
	}
	for _, s := range steps {
		_ = p.Signal(s.signal) // it may have ended meanwhile, which the wait below sees
		timer := time.NewTimer(s.patience)
		select {
		case err := <-ended:
			timer.Stop()
			var exit *exec.ExitError
			if o.Immediate && errors.As(err, &exit) {
				return nil // an immediate shutdown is no clean exit, and none was asked for
			}
			return err
		case <-timer.C:
		}
	}
	return errors.New("the server did not end after SIGKILL")
}
