// Package field holds the field cases as tests: what goes wrong in systems like this one, and the right outcome of each.
//
// # Model
//
// One file per case, one subtest per variant. A case runs the real binary as child processes, kills and freezes them at named places,
// and then asks the simulated destinations what happened. Times are a tenth of the case's or less, in their ratios.
//
// # Rules
//
// Nothing sleeps and nothing asserts on elapsed time. That something does not happen is shown by something later that went through.
// Every test ends with the oracle.
package field

import (
	"flag"
	"os"
	"testing"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/test/harness"
)

// atOnce is how many cases run at the same time: they mostly wait, for leases to run out and processes to start.
const atOnce = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	code := testkit.Run(m)
	harness.Clean()
	os.Exit(code)
}
