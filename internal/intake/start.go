package intake

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Errors that end Run.
var (
	// ErrTopicRecreated says that a topic was deleted and made again: its offsets mean other records.
	ErrTopicRecreated = errors.New("the topic was deleted and made again")
	// ErrBeyondEnd says that a partition ends before the place up to which its records are durable.
	ErrBeyondEnd = errors.New("the topic ends before the place that was read")
)

func (r *Reader) topicIDs() map[string][16]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids
}

// adjust decides where the assigned partitions begin.
func (r *Reader) adjust(ctx context.Context, assigned map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for {
		out, err := r.starts(ctx, assigned)
		switch {
		case err == nil:
			r.release(assigned)
			return out, nil
		case errors.Is(err, ErrTopicRecreated), errors.Is(err, ErrBeyondEnd):
			r.stop(err)
			return nil, err
		case ctx.Err() != nil:
			return nil, err
		}
		r.cfg.Logger.WarnContext(ctx, "cannot tell yet where to begin", "group", r.cfg.Group, "error", err)
		sleep(ctx, r.cfg.Retry)
	}
}

func (r *Reader) starts(ctx context.Context, assigned map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	admin := r.administrator()
	ids, err := r.learnTopics(ctx, admin)
	if err != nil {
		return nil, err
	}
	places, err := r.cfg.Places(ctx)
	if err != nil {
		return nil, err
	}
	first, err := r.cfg.First(ctx)
	if err != nil {
		return nil, err
	}
	bounds, err := r.bounds(ctx, admin)
	if err != nil {
		return nil, err
	}
	out := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range assigned {
		out[topic] = map[int32]kgo.Offset{}
		for partition, committed := range partitions {
			p := TopicPartition{topic, partition}
			place, known := places[p]
			if known {
				if err := r.check(ctx, p, place, ids[topic], bounds); err != nil {
					return nil, err
				}
			}
			start := startOf(place, known, committed.EpochOffset().Offset, first, p)
			out[topic][partition] = kgo.NewOffset().At(start).WithEpoch(-1)
		}
	}
	return out, nil
}

// bounds are where the topics' partitions begin and end now.
type bounds struct{ begin, end kadm.ListedOffsets }

func (r *Reader) bounds(ctx context.Context, admin *kadm.Client) (b bounds, err error) {
	if b.begin, err = admin.ListStartOffsets(ctx, r.cfg.Topics...); err != nil {
		return b, fmt.Errorf("list start offsets: %w", err)
	}
	if b.end, err = admin.ListEndOffsets(ctx, r.cfg.Topics...); err != nil {
		return b, fmt.Errorf("list end offsets: %w", err)
	}
	return b, nil
}

// check refuses a place that is not one of this topic: other records stand there, or none.
func (r *Reader) check(ctx context.Context, p TopicPartition, place Place, id [16]byte, b bounds) error {
	if place.TopicID != id {
		return recreated(p.Topic)
	}
	if end, ok := b.end.Lookup(p.Topic, p.Partition); ok && end.Err == nil && place.Next > end.Offset {
		return fmt.Errorf("%w: %s partition %d ends at %d, read up to %d; restore the topic or run `ebb recover`",
			ErrBeyondEnd, p.Topic, p.Partition, end.Offset, place.Next)
	}
	if begin, ok := b.begin.Lookup(p.Topic, p.Partition); ok && begin.Err == nil && place.Next < begin.Offset {
		r.cfg.Logger.ErrorContext(ctx, "records were deleted before they were read; compare the outbox with the journal, and keep records for longer",
			"group", r.cfg.Group, "topic", p.Topic, "partition", p.Partition, "from", place.Next, "to", begin.Offset)
	}
	return nil
}

// startOf is the lower of the journal's and the group's offset, the one that exists, else the reader's first.
func startOf(place Place, known bool, committed int64, first map[TopicPartition]int64, p TopicPartition) int64 {
	switch {
	case known && committed >= 0:
		return min(place.Next, committed)
	case known:
		return place.Next
	case committed >= 0:
		return committed
	default:
		return first[p]
	}
}

// compareTopics ends Run if a topic is not the one that is being read any more.
func (r *Reader) compareTopics(ctx context.Context) {
	reading := r.topicIDs()
	topics, err := r.administrator().ListTopics(ctx, r.cfg.Topics...)
	if err != nil {
		return // the next fetch asks again
	}
	for name, t := range topics {
		if t.Err == nil && t.ID != reading[name] {
			r.stop(recreated(name))
		}
	}
}

func recreated(topic string) error {
	return fmt.Errorf("%w: %s; its records begin anew, so compare them with the journal and then run `ebb recover`", ErrTopicRecreated, topic)
}

func (r *Reader) learnTopics(ctx context.Context, admin *kadm.Client) (map[string][16]byte, error) {
	topics, err := admin.ListTopics(ctx, r.cfg.Topics...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	ids := map[string][16]byte{}
	for name, t := range topics {
		if t.Err != nil {
			return nil, fmt.Errorf("topic %s: %w; create it with `ebb topics apply`", name, t.Err)
		}
		ids[name] = t.ID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = ids
	return ids, nil
}

func (r *Reader) administrator() *kadm.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admin
}
