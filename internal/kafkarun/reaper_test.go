package kafkarun_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ebbline/ebb/internal/kafkarun"
)

// A client that dies while it waits for the answer to its join gets a share of the partitions, and has to lose it again.
func TestMemberThatDiedWhileJoiningLosesItsPartitions(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	addr := startBroker(t, t.TempDir()).Addr()
	ensure(t, addr, kafkarun.TopicSpec{Name: "two", Partitions: 2, ReplicationFactor: 1})
	alive := newKafka(t, addr, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("two"), kgo.Balancers(kgo.RoundRobinBalancer()),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(100*time.Millisecond), kgo.RebalanceTimeout(time.Minute), kgo.BlockRebalanceOnPoll())
	t.Cleanup(alive.CloseAllowingRebalance)
	producer := newKafka(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	send := func(value string) {
		for p := range int32(2) {
			require.NoError(t, producer.ProduceSync(ctx, &kgo.Record{Topic: "two", Partition: p, Value: []byte(value)}).FirstErr())
		}
	}
	read := func(value string) {
		seen := map[int32]bool{}
		for len(seen) < 2 {
			alive.PollFetches(ctx).EachRecord(func(r *kgo.Record) { seen[r.Partition] = seen[r.Partition] || string(r.Value) == value })
			require.NoError(t, ctx.Err(), "%s was read of %v", value, seen)
			if len(seen) < 2 {
				alive.AllowRebalance()
			}
		}
	}
	send("before")
	read("before")
	const dying = 4 // the broker notices some of them by chance
	for n := range dying {
		joinAndDie(ctx, t, addr, n+2) // the living member does not join again before it is allowed to
	}
	alive.AllowRebalance()
	awaitGroup(ctx, t, addr, dying+1, "Stable")
	send("after")
	read("after")
}

// joinAndDie makes the group one of so many members and goes before it is answered.
func joinAndDie(ctx context.Context, t *testing.T, addr string, members int) {
	t.Helper()
	dying, err := kgo.NewClient(kgo.SeedBrokers(addr))
	require.NoError(t, err)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = "g", "consumer", 6000, 1000
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = []string{"two"}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "roundrobin", metadata.AppendTo(nil)
	join.Protocols = append(join.Protocols, protocol)
	resp, err := join.RequestWith(ctx, dying)
	require.NoError(t, err)
	require.NotEmpty(t, resp.MemberID)
	join.MemberID = resp.MemberID
	waiting, gone := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = join.RequestWith(waiting, dying)
	}()
	awaitGroup(ctx, t, addr, members, "PreparingRebalance")
	gone()
	<-ended
	dying.Close()
}

// awaitGroup waits until the group has so many members and is in the state.
func awaitGroup(ctx context.Context, t *testing.T, addr string, n int, state string) {
	t.Helper()
	client := newKafka(t, addr)
	for {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{"g"}
		resp, err := req.RequestWith(ctx, client)
		require.NoError(t, err)
		if len(resp.Groups) == 1 && len(resp.Groups[0].Members) == n && resp.Groups[0].State == state {
			return
		}
	}
}
