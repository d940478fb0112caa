package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/spec"
)

// loadCase reads a case: one file alone, or a folder as a set.
func loadCase(t *testing.T, path string) error {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	if info.IsDir() {
		_, err = spec.LoadDir(path)
		return err
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = spec.Parse(filepath.Base(path), data)
	return err
}

// TestBrokenAndMended goes through the rules one by one: each broken file has exactly one problem, at its place and with what to do
// about it, and the same file mended has none. EBB_GOLDEN=1 writes down what is found, to be read before it is kept.
func TestBrokenAndMended(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("testdata/broken")
	require.NoError(t, err)
	rules := 0
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".golden" {
			continue
		}
		rules++
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			broken := filepath.Join("testdata/broken", entry.Name())
			list := problems(t, loadCase(t, broken))
			require.Len(t, list, 1, "one rule, one problem: %v", list)
			list[0].File = filepath.Base(list[0].File)
			got := list[0].String() + "\n"
			golden := filepath.Join("testdata/broken", strings.TrimSuffix(entry.Name(), ".yaml")+".golden")
			if os.Getenv("EBB_GOLDEN") != "" {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
			require.NotEmpty(t, list[0].Suggestion, "every problem says what to do")

			require.NoError(t, loadCase(t, filepath.Join("testdata/mended", entry.Name())))
		})
	}
	require.GreaterOrEqual(t, rules, 30)
	mended, err := os.ReadDir("testdata/mended")
	require.NoError(t, err)
	require.Len(t, mended, rules)
}

// TestRedactNeedsAKey: requests are stored, so what is redacted in them is sealed.
func TestRedactNeedsAKey(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("stock.yaml", []byte(valid+"redact: { headers: [X-Card], body: [ $.card ] }\n"))
	require.NoError(t, err)
	plain, err := spec.Parse("plain.yaml", []byte(valid))
	require.NoError(t, err)
	require.EqualError(t, spec.CheckSealed([]*spec.Spec{plain, s}), "stock.yaml:13:1: redact needs a key: requests are stored before they are sent, "+
		"and these fields have to be sealed in them (set EBB_SEAL_KEY, for example to the output of: openssl rand -base64 32)")
	require.NoError(t, spec.CheckSealed([]*spec.Spec{plain}))
	require.True(t, s.Redact.HasHeader("x-card"))
}
