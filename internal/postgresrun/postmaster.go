package postgresrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pollEvery is how often files of the server are looked at while it starts or ends.
const pollEvery = 5 * time.Millisecond

// postmasterState reads postmaster.pid: the process id on line 1, and on line 8 how far it has come.
func (f folder) postmasterState() (pid int, status string) {
	text, err := os.ReadFile(filepath.Join(f.pgdata(), "postmaster.pid"))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(string(text), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return 0, ""
	}
	if len(lines) > 7 {
		status = strings.TrimSpace(lines[7])
	}
	return pid, status
}

// runs says whether process pid is a server on this folder. A pid file outlives its process at kill -9 and reboot,
// and the number may belong to anyone by now.
func (f folder) runs(ctx context.Context, pid int) bool {
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	if runtime.GOOS == "linux" {
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		return err == nil && cwd == f.realPGData()
	}
	out, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), f.pgdata())
}

func (f folder) realPGData() string {
	if real, err := filepath.EvalSymlinks(f.pgdata()); err == nil {
		return real
	}
	return f.pgdata()
}

// clearPrevious waits until no server runs on the folder. The caller holds the owner lock, so any server found has lost
// its owner: its supervisor is shutting it down, or was killed too, in which case asking for the shutdown is our job.
// unclean says that it left its pid file behind, so was killed.
func (f folder) clearPrevious(ctx context.Context, cfg Config) (unclean bool, err error) {
	pid, _ := f.postmasterState()
	if pid == 0 {
		return false, nil
	}
	if f.runs(ctx, pid) {
		cfg.Logger.InfoContext(ctx, "postgresrun: waiting for the previous server to end", "pid", pid, "data_dir", f.path)
		if err := f.endOrphan(ctx, pid); err != nil {
			return false, err
		}
	}
	// A clean end removes the file. After kill -9 it stays, and PostgreSQL would refuse to start if the number has been
	// given to another process of the same user meanwhile.
	if now, _ := f.postmasterState(); now != pid {
		return false, nil
	}
	if err := os.Remove(filepath.Join(f.pgdata(), "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return true, fmt.Errorf("remove a stale postmaster.pid: %w", err)
	}
	return true, nil
}

func (f folder) endOrphan(ctx context.Context, pid int) error {
	for _, s := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{syscall.SIGINT, fastFor}, {syscall.SIGQUIT, quitFor}, {syscall.SIGKILL, quitFor}} {
		_ = syscall.Kill(pid, s.signal) // gone is what we want
		gone, err := waitUntil(ctx, s.patience, func() bool { return !f.runs(ctx, pid) })
		if err != nil {
			return fmt.Errorf("previous server, process %d, on %s has not ended: %w", pid, f.path, err)
		}
		if gone {
			return nil
		}
	}
	return fmt.Errorf("previous server, process %d, on %s does not end: stop it by hand", pid, f.path)
}

// waitUntil polls a condition of another process, for which there is nothing to wait on.
func waitUntil(ctx context.Context, patience time.Duration, cond func() bool) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if cond() {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errPatience) {
				return false, nil
			}
			return false, ctx.Err()
		}
	}
}

var errPatience = errors.New("out of patience")
