// Command ledger runs the destination "ledger". It finds a running `ebb up` or `ebb infra` by .ebb/run.json, or takes EBB_DSN,
// EBB_BROKERS and EBB_REGISTRY_URL; LEDGER_URL is the accounting system.
package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/ebbline/ebb/consumers/handler"

	"example.com/invoicing/ledger"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := handler.FromEnv()
	if err != nil {
		return err
	}
	cfg.Logger = log
	return handler.Run(ctx, cfg, ledger.Destination(ledger.Ledger{URL: os.Getenv("LEDGER_URL"), Client: &http.Client{}}))
}
