// Command withpg runs a command with a throw-away PostgreSQL server, whose DSN the command finds in EBB_TEST_DSN, and
// passes on its exit code. Many test processes then share one server:
//
//	go run ./internal/testkit/withpg -- go test ./...
//
// (go run itself turns every failure into exit code 1.)
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/ebbline/ebb/internal/postgresrun"
	"github.com/ebbline/ebb/internal/testkit"
)

func main() {
	postgresrun.MaybeSupervise()
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withpg -- COMMAND [ARGUMENT...]")
		return 2
	}
	// Ctrl-C reaches the command by itself, a request to terminate is passed on; we stay to say how it ended.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	server, err := testkit.StartServer(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
		return 1
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "withpg:", err)
		}
	}()
	return command(args, server.DSN("postgres"), signals)
}

func command(args []string, dsn string, signals <-chan os.Signal) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), testkit.DSNVariable+"="+dsn)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Start()
	if err == nil {
		ended := make(chan struct{})
		defer close(ended)
		go func() {
			for {
				select {
				case s := <-signals:
					if s == syscall.SIGTERM {
						_ = cmd.Process.Signal(s) // it may have ended just now
					}
				case <-ended:
					return
				}
			}
		}()
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "withpg:", err)
		return 1
	}
}
