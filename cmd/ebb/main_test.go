package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/test/harness"
)

func TestMain(m *testing.M) {
	code := testkit.Run(m)
	harness.Clean()
	os.Exit(code)
}

// ebb runs a command line in this process.
func ebb(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestTakenPortNamesItsFlag(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	addr := taken.Addr().String()
	for _, flag := range []string{"--http", "--sim-http"} {
		other := map[string]string{"--http": "--sim-http", "--sim-http": "--http"}[flag]
		data := t.TempDir()
		status, _, stderr := ebb(t, "up", "--data", data, flag, addr, other, "127.0.0.1:0")
		require.Equal(t, exitUsage, status)
		require.Contains(t, stderr, addr)
		require.Contains(t, stderr, "choose another address with "+flag+"\n")
		left, err := os.ReadDir(data)
		require.NoError(t, err)
		require.Empty(t, left, "nothing was started")
	}
}

func TestUsageErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	bad := filepath.Join(dir, "bad")
	require.NoError(t, os.Mkdir(bad, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bad, "x.yaml"), []byte("destination: x\nurll: y\n"), 0o600))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no command":                {nil, "see `ebb --help`"},
		"unknown flag":              {[]string{"up", "--demoo", "3"}, "--demoo"},
		"exit without demo":         {[]string{"up", "--exit"}, "give --demo N as well"},
		"unknown flag in a file":    {[]string{"up", "--config", file("a.yaml", "demoo: 3\n")}, `"demoo" is not a flag`},
		"file that is no YAML":      {[]string{"up", "--config", file("b.yaml", ": : :\n")}, "b.yaml"},
		"file that is not there":    {[]string{"up", "--config", filepath.Join(dir, "none.yaml")}, "none.yaml"},
		"bad destination file":      {[]string{"config", "check", bad}, "x.yaml:2:1"},
		"no address and no ebb up":  {[]string{"migrate", "--data", dir}, "set EBB_DSN"},
		"unknown destination":       {[]string{"consumer", "--destination", "nobody", "--destinations", "../../consumers/destinations"}, "no file in"},
		"saga id that is none":      {[]string{"saga", "retry", "17", "billing", "--reason", "x"}, "see `ebb saga list`"},
		"log level that is unknown": {[]string{"version", "--log-level", "loud"}, "log-level"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := ebb(t, tc.args...)
			require.Equal(t, exitUsage, status, stderr)
			require.Contains(t, stderr, tc.want)
		})
	}
}

func TestConfigFileGivesFlagsAndTheCommandLineWins(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ebb.yaml")
	require.NoError(t, os.WriteFile(path, []byte("exit: true\ndemo: 0\n"), 0o600))
	status, _, stderr := ebb(t, "up", "--config", path)
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "give --demo N as well", "exit came from the file")
}

func TestSecondEbbOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := lockDir(dir, false)
	require.NoError(t, err)
	defer func() { require.NoError(t, lock.release()) }()
	_, err = lockDir(dir, true)
	require.ErrorContains(t, err, "another ebb uses "+dir)
}

func TestFreshRemovesOnlyWhatIsOurs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"run.json", "sim.ledger", "precious.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	lock, err := lockDir(dir, true)
	require.NoError(t, err)
	require.NoError(t, lock.release())
	require.NoFileExists(t, filepath.Join(dir, "sim.ledger"))
	require.FileExists(t, filepath.Join(dir, "precious.txt"))
}

func TestShippedFilesAreThoseOfTheFolder(t *testing.T) {
	t.Parallel()
	shipped, err := loadDestinations(filepath.Join(t.TempDir(), "consumers/destinations"))
	require.NoError(t, err)
	require.Len(t, shipped, 5)
	folder, err := loadDestinations("../../consumers/destinations")
	require.NoError(t, err)
	for i, s := range shipped {
		require.Equal(t, folder[i].Hash(), s.Hash())
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	status, stdout, _ := ebb(t, "--help")
	require.Equal(t, exitOK, status)
	require.Contains(t, stdout, "up")
	status, stdout, _ = ebb(t, "version")
	require.Equal(t, exitOK, status)
	require.Contains(t, stdout, "ebb ")
}

func TestUpEndsInOrderWhenItIsStoppedEarly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	status := run(ctx, []string{"up", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--sim-http", "127.0.0.1:0"}, &out, &errs)
	require.Equal(t, exitOK, status, errs.String())
}
