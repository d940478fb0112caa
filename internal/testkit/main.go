package testkit

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main is the body of TestMain: it runs the tests, stops the server of this process and fails the run if a goroutine
// has been left behind.
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
func Main(m *testing.M, opts ...goleak.Option) { os.Exit(Run(m, opts...)) }

// Run is Main for a TestMain that has something of its own to clean up: it gives the exit code.
func Run(m *testing.M, opts ...goleak.Option) int {
	code := m.Run()
	if err := stopServer(); err != nil {
		fmt.Fprintln(os.Stderr, "testkit: stop PostgreSQL:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(opts...); err != nil {
			fmt.Fprintln(os.Stderr, "testkit: goroutines left behind:", err)
			code = 1
		}
	}
	return code
}
