package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// BinaryVariable names the environment variable with a binary to use instead of building one.
const BinaryVariable = "EBB_TEST_BINARY"

// built is the binary of this process: it is the same for all its tests.
var built struct {
	once sync.Once
	path string
	err  error
}

// Build gives the path of the binary, built at the first call of a test process. Call [Clean] at the end of TestMain.
func Build(t testing.TB) string {
	t.Helper()
	built.once.Do(func() { built.path, built.err = build() })
	require.NoError(t, built.err, "build cmd/ebb (set %s to use a binary)", BinaryVariable)
	return built.path
}

func build() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return filepath.Abs(path)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "ebb-test-bin-")
	if err != nil {
		return "", err
	}
	// Entered by the account that runs the embedded PostgreSQL: the binary is also its supervisor.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ebb")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/ebb")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/ebb: %w\n%s", err, out)
	}
	return path, nil
}

// Clean removes the binary that Build made.
func Clean() {
	if built.path != "" && os.Getenv(BinaryVariable) == "" {
		_ = os.RemoveAll(filepath.Dir(built.path))
	}
}

// moduleRoot is the folder of go.mod, above the package under test.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			err = errors.New("no go.mod above the working folder: run the tests with go test")
		}
		dir = parent
	}
	return "", err
}

// ShippedDestinations is the folder of the destination files that Ebb comes with.
func ShippedDestinations(t testing.TB) string {
	t.Helper()
	root, err := moduleRoot()
	require.NoError(t, err)
	return filepath.Join(root, "consumers", "destinations")
}
