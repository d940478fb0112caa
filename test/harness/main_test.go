package harness_test

import (
	"testing"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/test/harness"
)

func TestMain(m *testing.M) {
	defer harness.Clean()
	testkit.Main(m)
}
