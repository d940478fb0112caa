package kafkarun_test

import (
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary run a broker or a registry to be killed.
const childEnv = "KAFKARUN_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "broker":
		os.Exit(brokerChild())
	case "registry":
		os.Exit(registryChild())
	}
	goleak.VerifyTestMain(m)
}

func testLog(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
