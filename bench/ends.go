package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/schemas"
)

// flow keeps a number of orders or records open at Ebb. It learns from the topic of sagas when one has ended, like any client of
// Ebb would.
type flow struct {
	places chan struct{} // one for each that may be open
	begun  atomic.Int64
	ended  atomic.Int64
	first  chan struct{} // closed when the first has ended
	once   sync.Once
}

func newFlow(open int) *flow {
	return &flow{places: make(chan struct{}, open), first: make(chan struct{})}
}

// enter waits for a place; it reports false when ctx has ended.
func (f *flow) enter(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case f.places <- struct{}{}:
		f.begun.Add(1)
		return true
	}
}

// watch counts ends until ctx ends. It asks for batches, so that it takes little of the machine.
func (f *flow) watch(ctx context.Context, e *ebb) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(e.addresses.Brokers...), kgo.ConsumeTopics(schemas.TopicSaga),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMinBytes(32<<10), kgo.FetchMaxWait(20*time.Millisecond))
	if err != nil {
		return fmt.Errorf("watch the topic of sagas: %w", err)
	}
	defer client.Close()
	for ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if ends(r) {
				f.end()
			}
		})
	}
	return nil
}

func (f *flow) end() {
	f.ended.Add(1)
	f.once.Do(func() { close(f.first) })
	select {
	case <-f.places:
	default: // of a paced load, which takes no places
	}
}

func ends(r *kgo.Record) bool {
	for _, h := range r.Headers {
		if h.Key == schemas.HeaderEventType {
			return string(h.Value) == schemas.EventSagaCompleted || string(h.Value) == schemas.EventSagaCompensated
		}
	}
	return false
}

// drained waits until everything that was begun has ended.
func (f *flow) drained(ctx context.Context, e *ebb) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for f.ended.Load() < f.begun.Load() {
		select {
		case <-e.done:
			return e.failure("ebb up ended during the run")
		default:
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return e.failure(fmt.Sprintf("%d of %d sagas have not ended", f.begun.Load()-f.ended.Load(), f.begun.Load()))
		}
	}
	return nil
}

// started waits until the first has ended: the consumers have their partitions by then.
func (f *flow) started(ctx context.Context, e *ebb) error {
	patience := time.NewTimer(time.Minute)
	defer patience.Stop()
	select {
	case <-f.first:
		return nil
	case <-e.done:
		return e.failure("ebb up ended during the run")
	case <-patience.C:
		return e.failure("no saga has ended in a minute")
	case <-ctx.Done():
		return ctx.Err()
	}
}
