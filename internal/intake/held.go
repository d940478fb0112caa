package intake

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// HeldError is what Take returns when everything is durable but some records that cannot be taken in yet, for a reason of their own.
// Their partitions are held: nothing more is read of them, and the records come again, while others go on.
type HeldError struct {
	Records []*kgo.Record // the end of what Take was given of each of their partitions
	Err     error
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%d records are held: %v", len(e.Records), e.Err)
}

func (e *HeldError) Unwrap() error { return e.Err }

// held are partitions whose next records are here and wait.
type held struct {
	records map[TopicPartition][]*kgo.Record
	wait    time.Duration // before the next try
	next    time.Time
}

func placeOf(r *kgo.Record) TopicPartition { return TopicPartition{r.Topic, r.Partition} }

func partition(p TopicPartition) map[string][]int32 {
	return map[string][]int32{p.Topic: {p.Partition}}
}

// due gives what may be taken in now, in the order of each partition: what was polled, and what was held if its time has come.
// What was polled of a partition that is held waits behind the rest of it.
func (r *Reader) due(polled []*kgo.Record, now time.Time) []*kgo.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.held.records) == 0 {
		return polled
	}
	var out []*kgo.Record
	again := !now.Before(r.held.next)
	if again {
		for p, records := range r.held.records {
			out = append(out, records...)
			r.held.records[p] = nil // still held, should it fail again
		}
	}
	for _, rec := range polled {
		p := placeOf(rec)
		if waiting, is := r.held.records[p]; is && !again {
			r.held.records[p] = append(waiting, rec)
			continue
		}
		out = append(out, rec)
	}
	return out
}

// hold keeps the records that could not be taken in, stops reading their partitions, and lets those go on that are not held any more.
func (r *Reader) hold(ctx context.Context, given []*kgo.Record, err *HeldError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := map[TopicPartition][]*kgo.Record{}
	if err != nil {
		for _, rec := range err.Records {
			now[placeOf(rec)] = append(now[placeOf(rec)], rec)
		}
	}
	tried := false
	for _, rec := range given {
		p := placeOf(rec)
		_, was := r.held.records[p]
		tried = tried || was
		if was && now[p] == nil {
			delete(r.held.records, p)
			r.client.ResumeFetchPartitions(partition(p))
		}
	}
	for p, records := range now {
		r.client.PauseFetchPartitions(partition(p))
		r.held.records[p] = records
	}
	if err == nil {
		return
	}
	r.held.wait = min(2*r.held.wait, maxWait)
	if !tried || r.held.wait == 0 {
		r.held.wait = r.cfg.Retry
	}
	r.held.next = time.Now().Add(r.held.wait)
	r.cfg.Logger.WarnContext(ctx, "partitions are held", "group", r.cfg.Group, "partitions", len(now), "records", len(err.Records),
		"wait", r.held.wait.String(), "error", err.Err)
}

// release forgets what is held of partitions that begin anew: their records come again.
func (r *Reader) release(assigned map[string]map[int32]kgo.Offset) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for topic, partitions := range assigned {
		for n := range partitions {
			p := TopicPartition{topic, n}
			if _, is := r.held.records[p]; is {
				delete(r.held.records, p)
				r.client.ResumeFetchPartitions(partition(p))
			}
		}
	}
}

// fetch polls, until the time of what is held has come.
func (r *Reader) fetch(ctx context.Context) kgo.Fetches {
	r.mu.Lock()
	waits, next := len(r.held.records) > 0, r.held.next
	r.mu.Unlock()
	if !waits {
		return r.client.PollRecords(ctx, r.cfg.MaxPoll)
	}
	until, cancel := context.WithDeadline(ctx, next)
	defer cancel()
	fetches := r.client.PollRecords(until, r.cfg.MaxPoll)
	if until.Err() != nil && len(fetches.Records()) == 0 && !fetches.IsClientClosed() {
		return nil // it was time, and nothing came
	}
	return fetches
}
