package consumers

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/journal"
)

// EndOffsets asks Kafka for the end of every partition of the topics.
func EndOffsets(brokers []string, opts []kgo.Opt, topics ...string) journal.EndOffsets {
	return offsets(brokers, opts, func(ctx context.Context, admin *kadm.Client) (kadm.ListedOffsets, error) {
		return admin.ListEndOffsets(ctx, topics...)
	})
}

// OffsetsAt asks Kafka for the first record of that time or later in every partition of the topics, by the records' timestamps.
func OffsetsAt(at time.Time, brokers []string, opts []kgo.Opt, topics ...string) journal.EndOffsets {
	return offsets(brokers, opts, func(ctx context.Context, admin *kadm.Client) (kadm.ListedOffsets, error) {
		return admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), topics...)
	})
}

func offsets(brokers []string, opts []kgo.Opt, ask func(context.Context, *kadm.Client) (kadm.ListedOffsets, error)) journal.EndOffsets {
	return func(ctx context.Context) (map[journal.TopicPartition]int64, error) {
		client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(brokers...)}, opts...)...)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		listed, err := ask(ctx, kadm.NewClient(client))
		if err != nil {
			return nil, err
		}
		out := map[journal.TopicPartition]int64{}
		listed.Each(func(o kadm.ListedOffset) {
			if o.Err != nil {
				err = fmt.Errorf("topic %s partition %d: %w; create it, those of Ebb with `ebb topics apply`", o.Topic, o.Partition, o.Err)
			}
			out[journal.TopicPartition{Topic: o.Topic, Partition: o.Partition}] = o.Offset
		})
		return out, err
	}
}
