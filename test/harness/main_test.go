package harness_test

import (
	"os"
	"testing"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/test/harness"
)

func TestMain(m *testing.M) {
	code := testkit.Run(m)
	harness.Clean()
	os.Exit(code)
}
