package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/test/harness"
)

// TestTheBinaryInAnotherFolderAndTimeZone runs it as a child: commands find what runs from a folder below, and times are UTC.
func TestTheBinaryInAnotherFolderAndTimeZone(t *testing.T) {
	t.Parallel()
	if _, err := time.LoadLocation("Asia/Tokyo"); err != nil {
		t.Skip("no time zones here")
	}
	root := t.TempDir()
	below := filepath.Join(root, "some", "where")
	require.NoError(t, os.MkdirAll(below, 0o755))
	binary := harness.Build(t)
	child := func(dir string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Dir, cmd.Env = dir, []string{"TZ=Asia/Tokyo", "HOME=" + root, "PATH=" + os.Getenv("PATH")}
		return cmd
	}
	sim := child(root, "sim", "--http", "127.0.0.1:0", "--ledger", filepath.Join(root, "ledger"), "--log-json")
	stderr, err := sim.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, sim.Start())
	lines := bufio.NewScanner(stderr)
	require.True(t, lines.Scan(), "the address is logged")
	var said struct{ Time, HTTP string }
	require.NoError(t, json.Unmarshal(lines.Bytes(), &said), lines.Text())
	require.True(t, strings.HasSuffix(said.Time, "Z"), said.Time)

	data := filepath.Join(root, ".ebb")
	require.NoError(t, os.Mkdir(data, 0o755))
	require.NoError(t, runFile{PID: sim.Process.Pid, Sim: said.HTTP}.write(data))
	out, err := child(below, "sim", "ledger", "check").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "no violations\n", string(out))

	require.NoError(t, sim.Process.Signal(syscall.SIGTERM))
	for lines.Scan() { // to the end of what it says
	}
	require.NoError(t, sim.Wait(), "an orderly end")

	gone := child(below, "sim", "ledger", "check")
	out, err = gone.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, exitUnreachable, gone.ProcessState.ExitCode(), string(out))
	require.Contains(t, string(out), "has ended: start `ebb up` again")
}
