package postgresrun

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// ownerVariable makes the test binary a program that runs a server on the named folder until it is killed.
const ownerVariable = "EBB_TEST_POSTGRES_OWNER"

func TestMain(m *testing.M) {
	MaybeSupervise()
	if dir := os.Getenv(ownerVariable); dir != "" {
		own(dir)
	}
	goleak.VerifyTestMain(m)
}

func own(dir string) {
	s, err := Start(context.Background(), Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler), Settings: small()})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready", s.DSN("postgres"))
	<-s.Done()
	os.Exit(1)
}

// small settings start faster.
func small() map[string]string { return map[string]string{"shared_buffers": "16MB"} }
