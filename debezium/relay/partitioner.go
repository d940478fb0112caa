package relay

import "github.com/twmb/franz-go/pkg/kgo"

// placedPartitioner lets a record choose its partition and otherwise does as the Java producer does by default: murmur2
// of the key, sticky without one.
type placedPartitioner struct{ hash kgo.Partitioner }

func (p placedPartitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return &placedTopic{TopicPartitioner: p.hash.ForTopic(topic)}
}

type placedTopic struct{ kgo.TopicPartitioner }

func (t *placedTopic) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || t.TopicPartitioner.RequiresConsistency(r)
}

// Partition may give a number beyond the topic's partitions, which fails the record as it must.
func (t *placedTopic) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return t.TopicPartitioner.Partition(r, n)
}

func (t *placedTopic) OnNewBatch() {
	if sticky, ok := t.TopicPartitioner.(kgo.TopicPartitionerOnNewBatch); ok {
		sticky.OnNewBatch()
	}
}
