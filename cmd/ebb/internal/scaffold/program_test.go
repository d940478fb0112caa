package scaffold

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheProgramIsWhatIsWritten keeps folder program, which is built and tested with all others, as `ebb destination new --go` writes it.
func TestTheProgramIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crm")
	files, err := WriteProgram(Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}, After: []string{"billing", "shipping"}})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "main.go"), filepath.Join(dir, "main_test.go")}, files)
	for _, path := range files {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		example := filepath.Join("program", filepath.Base(path))
		if *update {
			require.NoError(t, os.MkdirAll("program", 0o755))
			require.NoError(t, os.WriteFile(example, got, 0o644))
		}
		want, err := os.ReadFile(example)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "go test ./cmd/ebb/internal/scaffold -update writes it")
	}
	_, err = WriteProgram(Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}})
	require.ErrorContains(t, err, "exists")
}

func TestNothingStrangeGetsIntoAProgram(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	on := []string{"OrderCreated"}
	for what, tt := range map[string]struct {
		d    Destination
		want string
	}{
		"path as a name": {Destination{Name: "../evil", On: on}, "a name of 7 characters"},
		"lines":          {Destination{Name: "a\nfunc init() {}", On: on}, "a name of"},
		"no event":       {Destination{Name: "x"}, "no event type"},
		"odd event":      {Destination{Name: "x", On: []string{"a\"b"}}, "--on"},
		"after itself":   {Destination{Name: "x", On: on, After: []string{"x"}}, "--after"},
	} {
		tt.d.Dir = dir
		_, err := WriteProgram(tt.d)
		require.ErrorContains(t, err, tt.want, what)
	}
	require.NoDirExists(t, dir)
}
