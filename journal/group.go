package journal

import (
	"context"
	"errors"
	"time"
)

// GroupConfig says how a Group collects.
type GroupConfig[T any] struct {
	// Max is the largest batch, at least 1.
	Max int
	// Linger is how long the first member waits for others while the previous batch is on its way; zero means not at all.
	Linger time.Duration
	// Key names what at most one member of a batch may touch.
	Key func(T) any
	// Run stores a batch in one transaction: an error per member, or one for all.
	Run func(ctx context.Context, batch []T) ([]error, error)
	// Alone is called for a member whose batch of one failed by its own fault; nil means that the error is the member's.
	Alone func(ctx context.Context, member T, err error) error
	// Retryable tells errors that are nobody's fault, such as a lost connection: the batch is tried again as it is.
	Retryable func(error) bool
	// Pause is the wait between such tries.
	Pause time.Duration
}

// Group commits what many callers bring in shared transactions: while one is on its way, the next is collected. A batch that fails
// is halved until the bad member is alone.
type Group[T any] struct {
	cfg  GroupConfig[T]
	in   chan member[T]
	done chan struct{}
}

type member[T any] struct {
	value T
	done  func(error)
}

// ErrGroupClosed is returned by Do after Close.
var ErrGroupClosed = errors.New("journal: the group is closed")

// NewGroup makes a group; Run must be called for it to work.
func NewGroup[T any](cfg GroupConfig[T]) *Group[T] {
	cfg.Max = max(cfg.Max, 1)
	if cfg.Retryable == nil {
		cfg.Retryable = func(error) bool { return false }
	}
	return &Group[T]{cfg: cfg, in: make(chan member[T]), done: make(chan struct{})}
}

// Submit hands a value over; done is called once with its outcome, from the group's goroutine. It blocks while the group is busy
// with a full batch, and returns an error, without calling done, when ctx ends first or the group has ended.
func (g *Group[T]) Submit(ctx context.Context, value T, done func(error)) error {
	select {
	case g.in <- member[T]{value, done}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-g.done:
		return ErrGroupClosed
	}
}

// Run stores batches until ctx ends; what has been taken by then is stored first, for as long as hard allows: its end also ends
// the tries of a batch that meets a database that is down.
func (g *Group[T]) Run(ctx, hard context.Context) {
	defer close(g.done)
	var left []member[T]
	for {
		batch, rest, ok := g.collect(ctx, left)
		left = rest
		if len(batch) > 0 {
			g.store(hard, batch)
		}
		if !ok && len(left) == 0 {
			return
		}
	}
}

// collect gathers a batch with at most one member per key; what does not fit is left for the next. It reports false once ctx has
// ended.
func (g *Group[T]) collect(ctx context.Context, left []member[T]) (batch, rest []member[T], ok bool) {
	seen := map[any]bool{}
	take := func(m member[T]) {
		k := g.cfg.Key(m.value)
		if len(batch) < g.cfg.Max && !seen[k] {
			seen[k] = true
			batch = append(batch, m)
			return
		}
		rest = append(rest, m)
	}
	for _, m := range left {
		take(m)
	}
	if len(batch) == 0 {
		select {
		case m := <-g.in:
			take(m)
		case <-ctx.Done():
			return nil, rest, false
		}
	}
	linger := time.NewTimer(g.cfg.Linger)
	defer linger.Stop()
	for len(batch) < g.cfg.Max && len(rest) < g.cfg.Max {
		select {
		case m := <-g.in:
			take(m)
			continue
		default:
		}
		if g.cfg.Linger == 0 {
			return batch, rest, ctx.Err() == nil
		}
		select {
		case m := <-g.in:
			take(m)
		case <-linger.C:
			return batch, rest, ctx.Err() == nil
		case <-ctx.Done():
			return batch, rest, false
		}
	}
	return batch, rest, ctx.Err() == nil
}

// store runs a batch, again as long as nobody is at fault, and halved where a member is.
func (g *Group[T]) store(ctx context.Context, batch []member[T]) {
	values := make([]T, len(batch))
	for i, m := range batch {
		values[i] = m.value
	}
	errs, err := g.cfg.Run(ctx, values)
	for err != nil && ctx.Err() == nil && g.cfg.Retryable(err) {
		pause(ctx, g.cfg.Pause)
		errs, err = g.cfg.Run(ctx, values)
	}
	switch {
	case err == nil:
		for i, m := range batch {
			m.done(errs[i])
		}
	case len(batch) == 1:
		if g.cfg.Alone != nil {
			err = g.cfg.Alone(ctx, batch[0].value, err)
		}
		batch[0].done(err)
	default:
		half := len(batch) / 2
		g.store(ctx, batch[:half])
		g.store(ctx, batch[half:])
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
