package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/cmd/ebb/internal/inspect"
	"github.com/ebbline/ebb/cmd/ebb/internal/orderapi"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/sim"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for want, errs := range map[int][]error{
		exitFailed: {errors.New("anything"), &orderapi.Error{Status: 500}, &sim.APIError{Status: 500}},
		exitUsage:  {&usageError{errors.New("x")}, &orderapi.Error{Status: 400}, &orderapi.Error{Status: 413}},
		exitUnreachable: {
			&unreachableError{errors.New("x")}, &orderapi.UnreachableError{Err: errors.New("x")}, &orderapi.Error{Status: 503},
		},
		exitNotFound: {journal.ErrNoSaga, saga.ErrNoStep, inspect.ErrNoDeadLetter, &orderapi.Error{Status: 404}, &sim.APIError{Status: 404}},
		exitRefused:  {saga.ErrNotParked, saga.ErrUnresolved, &orderapi.Error{Status: 409}, &orderapi.Error{Status: 422}},
	} {
		for _, err := range errs {
			require.Equal(t, want, exitOf(fmt.Errorf("doing it: %w", err)), "%T %v", err, err)
		}
	}
}

// TestNobodyAnswers: an address at which nobody is, given in every way.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free := ln.Addr().String()
	require.NoError(t, ln.Close())
	data := t.TempDir()
	gone := runFile{PID: 1 << 30, HTTP: "http://" + free, Sim: "http://" + free, DSN: "postgres://postgres:secret@" + free + "/ebb", Registry: []string{"http://" + free}}
	require.NoError(t, gone.write(data))
	for _, args := range [][]string{
		{"order", "list", "--url", "http://" + free},
		{"order", "list"},
		{"sim", "ledger", "--url", "http://" + free},
		{"sim", "faults"},
		{"sim", "load", "--count", "1"},
		{"saga", "list"},
		{"saga", "retry", "019347a0-6c5e-7c3a-9d55-0f2f4bd1a001", "billing", "--reason", "x"},
		{"dlq", "list"},
		{"destination", "list"},
	} {
		status, stdout, stderr := ebb(t, append(args, "--data", data)...)
		require.Equal(t, exitUnreachable, status, "%v: %s", args, stderr)
		require.Empty(t, stdout)
		require.NotContains(t, stderr, "secret")
		if args[len(args)-1] != "http://"+free {
			require.Contains(t, stderr, runPath(data)+", whose process 1073741824 has ended: start `ebb up` again", args)
		}
	}
}

func TestNoAddressSaysBothWays(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for variable, args := range map[string][]string{
		"EBB_URL":     {"order", "list"},
		"EBB_SIM_URL": {"sim", "ledger", "check"},
		"EBB_DSN":     {"saga", "list"},
	} {
		status, _, stderr := ebb(t, append(args, "--data", data, "--json")...)
		require.Equal(t, exitUsage, status)
		var said struct {
			Error string
			Exit  int
		}
		require.NoError(t, json.Unmarshal([]byte(stderr), &said))
		require.Equal(t, exitUsage, said.Exit)
		require.Contains(t, said.Error, runPath(data))
		require.Contains(t, said.Error, "set "+variable)
	}
	for _, args := range [][]string{{"order", "list", "--url", "not a url"}, {"order", "list", "--url", "http://user:secret@x"}} {
		status, _, stderr := ebb(t, args...)
		require.Equal(t, exitUsage, status)
		require.NotContains(t, stderr, "secret")
	}
}

// TestARunningEbbIsFoundFromFoldersBelow changes the working directory, so it runs alone.
func TestARunningEbbIsFoundFromFoldersBelow(t *testing.T) {
	root := t.TempDir()
	below := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, ".ebb"), 0o755))
	require.NoError(t, runFile{PID: os.Getpid(), HTTP: "http://above"}.write(filepath.Join(root, ".ebb")))
	t.Chdir(below)
	here, err := os.Getwd()
	require.NoError(t, err)
	found, err := place{filepath.Join(here, ".ebb")}.find()
	require.NoError(t, err)
	require.Equal(t, "http://above", found.HTTP)
	require.False(t, found.ended())

	none, err := place{filepath.Join(here, "other")}.find()
	require.NoError(t, err)
	require.Empty(t, none.HTTP, "a folder that is named is not looked for elsewhere")

	require.NoError(t, os.MkdirAll(filepath.Join(here, ".ebb"), 0o755))
	require.NoError(t, runFile{HTTP: "http://near"}.write(filepath.Join(here, ".ebb")))
	near, err := place{filepath.Join(here, ".ebb")}.find()
	require.NoError(t, err)
	require.Equal(t, "http://near", near.HTTP, "the nearest counts")

	require.NoError(t, os.WriteFile(runPath(filepath.Join(here, ".ebb")), []byte("{"), 0o600))
	_, err = place{filepath.Join(here, ".ebb")}.find()
	require.ErrorContains(t, err, "remove it and start `ebb up` again")
}

func TestAFileOfAnotherUserIsNotFollowed(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, owned(info))
	require.NoError(t, os.Chown(path, 65534, 65534))
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.False(t, owned(info))
}

func TestTextsFromOutsideCannotMoveTheCursor(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\u001b[2Jb\u000ac`, plain("a\x1b[2Jb\nc"))
	require.Equal(t, "Ünïcode 漢", plain("Ünïcode 漢"))
	var out strings.Builder
	table(&out, "things", []string{"A", "B"}, [][]string{{"x\t1", "y"}, {"longer", ""}})
	require.Equal(t, "A         B\nx\\u00091  y\nlonger\n", out.String())
}

func TestManyAttemptsAreNotAllShown(t *testing.T) {
	t.Parallel()
	attempts := make([]inspect.Attempt, shownAttempts+7)
	for i := range attempts {
		attempts[i].Attempt = i + 1
	}
	var out strings.Builder
	printAttempts(&out, attempts[0].StartedAt, attempts)
	require.Contains(t, out.String(), "… 7 attempts before these; --json has all\n      attempt 8 ")
	require.Equal(t, shownAttempts+1, strings.Count(out.String(), "\n"))
}

func TestErrorsOfTheCommandLineAreJSONToo(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := ebb(t, "order", "list", "--json", "--bogus")
	require.Equal(t, exitUsage, status)
	require.Empty(t, stdout)
	require.Contains(t, documents(t, stderr)[0]["error"], "--bogus")
}

// TestALostAnswerNamesItsKey: what may have been stored can be found out.
func TestALostAnswerNamesItsKey(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"cut":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"unavailable": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewUnstartedServer(answer)
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.Start()
			defer srv.Close()
			status, _, stderr := ebb(t, "order", "create", "--customer", "c", "--amount", "1", "--key", "mine", "--url", srv.URL)
			require.Equal(t, exitUnreachable, status)
			require.Contains(t, stderr, "repeat the command with --key mine to find out")
			status, _, stderr = ebb(t, "order", "cancel", "7", "--url", srv.URL)
			require.Equal(t, exitUnreachable, status)
			require.Regexp(t, `with --key [0-9a-f-]{36} to find out`, stderr, "a key that was not given is named too")
		})
	}
}

func TestNewDestination(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "files")
	status, stdout, stderr := ebb(t, "destination", "new", "crm", "--dir", dir)
	require.Equal(t, exitOK, status, stderr)
	require.Contains(t, stdout, "ebb config check "+dir)
	require.Contains(t, stdout, "export CRM_URL=")
	status, _, stderr = ebb(t, "config", "check", dir)
	require.Equal(t, exitOK, status, stderr)
	status, _, stderr = ebb(t, "destination", "new", "crm", "--dir", dir)
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "crm is a destination already")
	status, stdout, _ = ebb(t, "destination", "new", "mail", "--dir", dir, "--after", "crm", "--json")
	require.Equal(t, exitOK, status)
	doc := documents(t, stdout)[0]
	require.Equal(t, "mail", doc["name"])
	require.Len(t, doc["files"], 1)
	require.Len(t, doc["next"], 4)
}

func TestConfigCheckAsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.yaml")
	require.NoError(t, os.WriteFile(path, []byte("destination: x\nurll: y\n"), 0o600))
	status, stdout, stderr := ebb(t, "config", "check", dir, "--json")
	require.Equal(t, exitUsage, status)
	docs := documents(t, stdout)
	require.Greater(t, len(docs), 1, "every problem is a document")
	for _, d := range docs {
		require.Equal(t, path, d["file"])
		require.NotEmpty(t, d["message"])
	}
	require.Contains(t, stderr, fmt.Sprintf(`%d problems`, len(docs)))
	status, stdout, stderr = ebb(t, "config", "check", "testdata/destinations", "--json")
	require.Equal(t, exitOK, status, stderr)
	require.Equal(t, "billing", documents(t, stdout)[0]["destination"])
}

// TestCompletionHasEveryCommand: the scripts know the whole model; how they complete is tested beside them.
func TestCompletionHasEveryCommand(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		status, script, stderr := ebb(t, "completion", shell)
		require.Equal(t, exitOK, status, stderr)
		for _, n := range model(t).Leaves(true) {
			require.Contains(t, script, "'"+n.Path()+"'", shell)
			for _, f := range n.Flags {
				require.Contains(t, script, f.Name, shell)
			}
		}
	}
	status, _, stderr := ebb(t, "completion", "tcsh")
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "see `ebb completion --help`")
}

func TestVersionAsJSON(t *testing.T) {
	t.Parallel()
	status, stdout, _ := ebb(t, "version", "--json")
	require.Equal(t, exitOK, status)
	doc := documents(t, stdout)[0]
	require.NotEmpty(t, doc["version"])
	require.NotEmpty(t, doc["go"])
}
