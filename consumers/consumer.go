package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/journal"
)

// Consumer runs one destination. Make it with New, then call Run once.
type Consumer struct {
	cfg     Config
	log     *slog.Logger
	reader  *intake.Reader
	record  *Recorder
	release *journal.Group[journal.Return]
	breaker *breaker
	health  *health
	limiter *rate.Limiter
	flights *flights
	pace    pace
	trial   trial
	// places are those of the destination that this replica has.
	places *gate
	link   *link
	since  intakeSince
	// unknown and reading are of the reading loop.
	unknown unknownIDs
	reading obstacle
	// claiming makes counting the free places and taking them one step.
	claiming sync.Mutex
	// calls is the context of attempts; Run sets it.
	calls context.Context //nolint:containedctx // attempts begin in two loops and end together
	// stopping is closed at the stop; Run sets it.
	stopping <-chan struct{}
}

// New checks the configuration; it does not connect.
func New(cfg Config) (*Consumer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	record := cfg.Recorder
	if record == nil {
		record = NewRecorder(RecorderConfig{Store: cfg.Store, Batch: cfg.Batch, Linger: cfg.Linger, Logger: cfg.Logger})
	}
	c := &Consumer{
		cfg: cfg, log: cfg.Logger, record: record, link: record.link,
		breaker: newBreaker(cfg.BreakerAfter, cfg.ProbeEvery, cfg.ProbeMax, cfg.Concurrency),
		health:  newHealth(), flights: newFlights(cfg.Concurrency, cfg.Batch), places: newGate(cfg.Concurrency),
		unknown: unknownIDs{},
	}
	if cfg.RateEvery > 0 {
		c.limiter = rate.NewLimiter(rate.Every(cfg.RateEvery), max(cfg.RateBurst, 1))
	}
	c.release = journal.NewGroup(journal.GroupConfig[journal.Return]{
		Max: cfg.Batch, Linger: cfg.Linger, Pause: 100 * time.Millisecond,
		Key: func(m journal.Return) any { return stepOf(m.Claimed) },
		Run: func(ctx context.Context, b []journal.Return) ([]error, error) {
			return watched(c.link, cfg.Store.Release)(ctx, b)
		},
		Retryable: journal.Retryable,
	})
	reader, err := intake.New(intake.Config{
		Brokers: cfg.Brokers, Options: cfg.KafkaOptions, Group: cfg.Group, Topics: cfg.Topics, Logger: cfg.Logger,
		Places: c.positions, First: c.first, Take: c.take, Ready: c.ready,
	})
	c.reader = reader
	return c, err
}

// watched lets the link know how a call of the store went.
func watched[A, B any](l *link, f func(context.Context, A) (B, error)) func(context.Context, A) (B, error) {
	return func(ctx context.Context, a A) (B, error) {
		out, err := f(ctx, a)
		l.saw(err)
		return out, err
	}
}

// Run works until ctx ends, and then stops in order: no new records, no new calls, the grace for calls in flight, what is cut off
// given back, results stored, the group left. It returns nil after an orderly stop, else what ended it.
func (c *Consumer) Run(ctx context.Context) error {
	// A destination that is removed goes on finishing and undoing what it was given before.
	if _, err := c.cfg.Store.VersionOf(ctx, c.cfg.Destination, 1); err != nil {
		return fmt.Errorf("destination %s: %w", c.cfg.Destination, err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	calls, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	c.calls, c.stopping = calls, ctx.Done()
	store, closeStore := context.WithCancel(context.WithoutCancel(ctx))
	defer closeStore()
	hard, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()

	var groups, loops sync.WaitGroup
	if c.cfg.Recorder == nil {
		groups.Go(func() { c.record.Run(store, hard) })
	}
	groups.Go(func() { c.release.Run(store, hard) })
	c.muster(ctx) // before the first claim: the others have to make room
	loops.Go(func() { c.musterLoop(ctx) })
	c.record.consumers.join(c)
	loops.Go(func() { stop(c.reader.Run(ctx)) })
	loops.Go(func() { c.expire(ctx) })
	loops.Go(func() { c.dispatch(ctx) })

	<-ctx.Done()
	c.record.consumers.leave(c)
	c.flights.wait(c.cfg.Grace)
	cut(errShutdown)
	// What is cut off returns at once; to give it back takes a transaction. A database that is down must not keep us for ever.
	overdue := time.AfterFunc(c.cfg.Grace, giveUp)
	defer overdue.Stop()
	loops.Wait()
	c.flights.wait(-1)
	closeStore()
	groups.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// errShutdown is the cause of calls that are cut off at the end of the grace.
var errShutdown = errors.New("shutting down")
