package postgresrun

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeInstall makes a folder whose postgres says a version.
func fakeInstall(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho '" + version + "'\n"
	for _, name := range []string{"postgres", "initdb"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	}
	return dir
}

func TestFind(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		version string
		major   int
		want    int    // release found, 0 for none
		looked  string // part of what is said about the folder
	}{
		"Debian":          {version: "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", want: 15},
		"beta":            {version: "postgres (PostgreSQL) 19beta2", want: 19},
		"too old":         {version: "postgres (PostgreSQL) 13.9", looked: "older than 14"},
		"wrong release":   {version: "postgres (PostgreSQL) 16.1", major: 15, looked: "release 16"},
		"right release":   {version: "postgres (PostgreSQL) 16.1", major: 16, want: 16},
		"something else":  {version: "hello", looked: `"hello"`},
		"another product": {version: "postgres (EnterpriseThing) 15", looked: "EnterpriseThing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inst, missing := find(context.Background(), fakeInstall(t, test.version), test.major)
			if test.want != 0 {
				require.Nil(t, missing)
				require.Equal(t, test.want, inst.major)
				return
			}
			require.NotNil(t, missing)
			require.Len(t, missing.Looked, 1)
			require.Contains(t, missing.Error(), test.looked)
			require.Contains(t, missing.Error(), "--postgres DSN")
		})
	}
}

func TestNamedFolderIsTheOnlyOneLookedAt(t *testing.T) {
	t.Parallel()
	cfg := config(newDir(t))
	cfg.BinDir = t.TempDir()
	_, err := Start(context.Background(), cfg)
	var missing *NotFoundError
	require.ErrorAs(t, err, &missing)
	require.Len(t, missing.Looked, 1)
	require.NoError(t, missing.Fetch, "a download was not tried")
}

func TestConfigNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := Start(context.Background(), Config{Port: -1, StartTimeout: -1, Settings: map[string]string{"fsync": "on", "a b": ""}})
	for _, part := range []string{"DataDir", "port -1", "StartTimeout", `"fsync"`, `"a b"`} {
		require.ErrorContains(t, err, part)
	}
}

func TestPlaceAvoidsFoldersTheUserCannotEnter(t *testing.T) {
	t.Parallel()
	closed := t.TempDir()
	require.NoError(t, os.Chmod(closed, 0o700))
	other := account{drop: true, uid: 54321, gid: 54321, name: "other"}
	asked := filepath.Join(closed, "clone", ".ebb", "postgres")
	got := other.place(asked)
	require.Equal(t, systemState, filepath.Dir(got))
	require.Equal(t, got, other.place(asked), "the same place each time")
	require.NotEqual(t, got, other.place(asked+"2"))
	require.Equal(t, "/nowhere/yet", other.place("/nowhere/yet"), "folders to be made can be entered")
	require.Equal(t, asked, account{uid: 54321}.place(asked), "who does not change users uses what was asked for")
}

func TestSettingsAreQuoted(t *testing.T) {
	t.Parallel()
	f := folder{path: t.TempDir()}
	require.NoError(t, os.Mkdir(f.pgdata(), 0o700))
	require.NoError(t, f.configure(Config{Settings: map[string]string{"log_line_prefix": `it's \ here`}}, 5432))
	text, err := os.ReadFile(filepath.Join(f.pgdata(), "postgresql.conf"))
	require.NoError(t, err)
	require.Contains(t, string(text), `log_line_prefix = 'it''s \\ here'`)
	require.Contains(t, string(text), "wal_level = 'logical'")
}
