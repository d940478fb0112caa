package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Group is a set of actors that live and end together. The zero value is ready.
type Group struct {
	actors []actor
}

type actor struct {
	name string
	run  func(ctx context.Context) error
}

// Add adds an actor; run returns when ctx ends.
func (g *Group) Add(name string, run func(ctx context.Context) error) {
	g.actors = append(g.actors, actor{name, run})
}

// Run starts all actors and returns when all have ended. The first to end, with or without an error, stops the rest. The error is
// that of the first that failed, with its name; the end of ctx is not an error.
func (g *Group) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for _, a := range g.actors {
		all.Go(func() {
			err := a.run(ctx)
			// An actor that was cancelled though nobody had stopped the group has failed: something of its own ended it.
			if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
				stop(&failure{a.name, err})
				return
			}
			stop(errEnded)
		})
	}
	all.Wait()
	var f *failure
	if errors.As(context.Cause(ctx), &f) {
		return f
	}
	return nil
}

var errEnded = errors.New("an actor has ended")

// failure is how the first actor that failed has ended.
type failure struct {
	actor string
	err   error
}

func (f *failure) Error() string { return fmt.Sprintf("%s: %v", f.actor, f.err) }

func (f *failure) Unwrap() error { return f.err }

// Signals gives a context that ends with the first SIGINT or SIGTERM. A second one ends the process with status 130.
func Signals(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-ch:
			cancel()
		case <-ctx.Done():
		}
		<-ch
		os.Exit(130)
	}()
	return ctx, cancel
}
