package harness

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
)

// LogsVariable names the environment variable with a folder for everything that children write.
const LogsVariable = "EBB_TEST_LOGS"

// patience is how long a wait goes on before the test is failed as hung.
const patience = 2 * time.Minute

// Process is a program that may run many times, with the same flags and environment. Its end, however it comes, is never an error
// here: the test says what it expects.
type Process struct {
	t    testing.TB
	name string
	args []string
	env  []string // NAME=value, for every run
	out  *output

	mu   sync.Mutex
	last *run
}

// run is one life of the process.
type run struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and what it wrote is read
}

// newProcess makes a process that has not been started, and kills it when the test ends.
func newProcess(t testing.TB, name string, args, env []string) *Process {
	p := &Process{t: t, name: name, args: args, env: env}
	keep := logFile(t, name) // nil without EBB_TEST_LOGS
	if keep == nil {
		p.out = newOutput(nil)
	} else {
		p.out = newOutput(keep)
	}
	t.Cleanup(func() {
		if t.Failed() && keep != nil {
			p.Signal(syscall.SIGQUIT) // its goroutines go to the file
			p.Continue()
			p.Wait()
		}
		p.Kill()
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", name, p.out.tail(150))
		}
		if keep != nil {
			_ = keep.Close()
		}
	})
	return p
}

func logFile(t testing.TB, name string) *os.File {
	dir := os.Getenv(LogsVariable)
	if dir == "" {
		return nil
	}
	clean := strings.NewReplacer("/", "_", " ", "_")
	f, err := os.CreateTemp(dir, clean.Replace(t.Name()+"_"+name)+"-*.log")
	require.NoError(t, err, LogsVariable)
	return f
}

// start begins a run. env holds for this run only and wins over that of the process.
func (p *Process) start(env ...string) {
	p.t.Helper()
	require.False(p.t, p.Running(), "%s runs already", p.name)
	cmd := exec.Command(Build(p.t), p.args...)
	cmd.Env = slices.Concat(os.Environ(), p.env, env)
	cmd.SysProcAttr = diesWithParent()
	stdout := p.pipe()
	stderr := p.pipe()
	cmd.Stdout, cmd.Stderr = stdout.w, stderr.w
	p.out.begin()
	err := cmd.Start()
	_ = stdout.w.Close()
	_ = stderr.w.Close()
	require.NoError(p.t, err, "start %s", p.name)
	r := &run{cmd: cmd, done: make(chan struct{})}
	p.mu.Lock()
	p.last = r
	p.mu.Unlock()
	var readers sync.WaitGroup
	readers.Go(func() { p.out.read(stdout.r, true) })
	readers.Go(func() { p.out.read(stderr.r, false) })
	go func() {
		_ = cmd.Wait()
		// A grandchild, such as the database's supervisor, may hold the descriptors for longer.
		soon := time.Now().Add(200 * time.Millisecond)
		_ = stdout.r.SetReadDeadline(soon)
		_ = stderr.r.SetReadDeadline(soon)
		readers.Wait()
		_ = stdout.r.Close()
		_ = stderr.r.Close()
		close(r.done)
	}()
}

type pipe struct{ r, w *os.File }

// pipe is one whose reading does not keep the wait for the process from ending.
func (p *Process) pipe() pipe {
	r, w, err := os.Pipe()
	require.NoError(p.t, err)
	return pipe{r, w}
}

// current is the newest run, nil before the first.
func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Running tells whether the process lives.
func (p *Process) Running() bool {
	r := p.current()
	if r == nil {
		return false
	}
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// PID of the newest run, 0 before the first.
func (p *Process) PID() int {
	if r := p.current(); r != nil {
		return r.cmd.Process.Pid
	}
	return 0
}

// Name of the process in messages.
func (p *Process) Name() string { return p.name }

// Signal sends a signal; a process that has ended is left alone.
func (p *Process) Signal(sig syscall.Signal) {
	if p.Running() {
		_ = p.current().cmd.Process.Signal(sig)
	}
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	r := p.current()
	if r == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	<-r.done
}

// Stop ends the process with SIGTERM and gives its exit code. One that does not end is a failure.
func (p *Process) Stop() int {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// Pause freezes the process (SIGSTOP), Continue lets it go on (SIGCONT).
func (p *Process) Pause() { p.Signal(syscall.SIGSTOP) }

// Continue lets a paused process go on.
func (p *Process) Continue() { p.Signal(syscall.SIGCONT) }

// Wait waits until the process has ended and gives its exit code, -1 for a signal.
func (p *Process) Wait() int {
	p.t.Helper()
	r := p.current()
	require.NotNil(p.t, r, "%s was never started", p.name)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-r.done:
	case <-deadline.C:
		p.t.Fatalf("%s has not ended within %s", p.name, patience)
	}
	return r.cmd.ProcessState.ExitCode()
}

// WaitLine waits until this run has written a line with the text, such as "failpoint NAME: kill", and gives the line.
func (p *Process) WaitLine(text string) string {
	p.t.Helper()
	r := p.current()
	require.NotNil(p.t, r, "%s was never started", p.name)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		got, ok, more := p.out.find(text)
		if ok {
			return got
		}
		select {
		case <-more:
		case <-r.done:
			if got, ok, _ := p.out.find(text); ok {
				return got
			}
			p.t.Fatalf("%s ended with code %d without a line with %q", p.name, r.cmd.ProcessState.ExitCode(), text)
		case <-deadline.C:
			p.t.Fatalf("%s has not written a line with %q within %s", p.name, text, patience)
		}
	}
}

// Saw tells whether this run has written a line with the text.
func (p *Process) Saw(text string) bool {
	_, ok, _ := p.out.find(text)
	return ok
}

// Output is everything that all runs wrote, in the order in which it was read.
func (p *Process) Output() string { return p.out.text(false) }

// Stdout is what this run wrote to standard output.
func (p *Process) Stdout() string { return p.out.text(true) }

// await waits for a condition of a process that has to live for it.
func (p *Process) await(cond func() (bool, string)) {
	p.t.Helper()
	testkit.Eventually(p.t, func() (bool, string) {
		if !p.Running() {
			p.t.Fatalf("%s ended with code %d", p.name, p.current().cmd.ProcessState.ExitCode())
		}
		ok, message := cond()
		return ok, p.name + ": " + cmp.Or(message, "waiting")
	}, patience)
}
