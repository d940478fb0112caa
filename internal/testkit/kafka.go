package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// Kafka starts an in-memory cluster of one broker with the given topics (name to number of partitions) and gives its
// addresses. It ends with the test. Topics are not created by use: a misspelt name fails, as in production.
func Kafka(t testing.TB, topics map[string]int32) []string {
	t.Helper()
	return KafkaCluster(t, topics).ListenAddrs()
}

// KafkaCluster is Kafka for tests that inject faults or look into the cluster.
func KafkaCluster(t testing.TB, topics map[string]int32, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	// Tests may make members impatient.
	all := []kfake.Opt{kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "100"})}
	for name, partitions := range topics {
		all = append(all, kfake.SeedTopics(partitions, name))
	}
	cluster, err := kfake.NewCluster(append(all, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster
}
