package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// caseFolder is a folder with the case alone in it: the case itself, or one with its file.
func caseFolder(t *testing.T, path string) string {
	t.Helper()
	if filepath.Ext(path) != ".yaml" {
		return path
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600))
	return dir
}

// TestConfigCheckEndsBadlyOnBrokenFilesOnly goes through the cases of package spec: place, message and suggestion are printed, and the
// status tells a script.
func TestConfigCheckEndsBadlyOnBrokenFilesOnly(t *testing.T) {
	t.Setenv("EBB_SEAL_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	const cases = "../../destination/spec/testdata/"
	golden, err := filepath.Glob(cases + "broken/*.golden")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(golden), 30)
	for _, path := range golden {
		name := strings.TrimSuffix(filepath.Base(path), ".golden")
		if _, err := os.Stat(cases + "broken/" + name); err != nil {
			name += ".yaml"
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		status, _, stderr := ebb(t, "config", "check", caseFolder(t, cases+"broken/"+name))
		require.Equal(t, exitUsage, status, name)
		require.Contains(t, strings.ReplaceAll(stderr, "../../destination/spec/", ""), strings.TrimSpace(string(want)), name)

		status, stdout, stderr := ebb(t, "config", "check", caseFolder(t, cases+"mended/"+name))
		require.Equal(t, exitOK, status, "%s: %s", name, stderr)
		require.Contains(t, stdout, ": ok, on ", name)
	}
}

func TestConfigCheckWantsAKeyForWhatIsRedacted(t *testing.T) {
	t.Setenv("EBB_SEAL_KEY", "")
	dir := caseFolder(t, "../../destination/spec/testdata/mended/62-redacts-nothing.yaml")
	status, _, stderr := ebb(t, "config", "check", dir)
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, ".yaml:5:1: redact needs a key")
	t.Setenv("EBB_SEAL_KEY", "canary")
	status, _, stderr = ebb(t, "config", "check", dir)
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "key 1 is not 32 bytes in base64")
	require.NotContains(t, stderr, "canary")
}
