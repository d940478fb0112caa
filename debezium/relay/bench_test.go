package relay_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/debezium/relay"
)

const benchTable = `CREATE TABLE outbox (
	id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregatetype text NOT NULL, aggregateid text NOT NULL, type text NOT NULL,
	payload bytea, version bigint NOT NULL DEFAULT 1, schema_version int NOT NULL DEFAULT 1, traceparent text,
	created_at timestamptz NOT NULL DEFAULT now())`

const benchPlacement = "type:header:eventType,version:header:aggregateVersion,schema_version:header:schemaVersion,traceparent:header"

// BenchmarkDrain measures a backlog of rows of 500 bytes, 20 to a transaction, from the start of the relay to the last
// acknowledgement.
func BenchmarkDrain(b *testing.B) {
	env := setup(b, benchTable, benchPlacement, map[string]int32{"outbox.event.order": 12})
	for left := b.N; left > 0; left -= 20 {
		env.exec(b, `INSERT INTO outbox (aggregatetype, aggregateid, type, payload)
			SELECT 'order', i::text, 'OrderCreated', decode(repeat('ab', 500), 'hex') FROM generate_series(1, $1) AS i`, min(left, 20))
	}
	acked := make(chan struct{})
	left := b.N
	env.cfg.Hooks.OnRecord = relayCounter(&left, acked)
	b.SetBytes(500)
	b.ReportAllocs()
	b.ResetTimer()
	env.start(b)
	<-acked
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkLatency measures one row at a time, from its commit to a consumer.
func BenchmarkLatency(b *testing.B) {
	env := setup(b, benchTable, benchPlacement, map[string]int32{"outbox.event.order": 1})
	env.start(b)
	client, err := kgo.NewClient(kgo.SeedBrokers(env.cfg.Brokers...), kgo.ConsumeTopics("outbox.event.order"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(b, err)
	defer client.Close()
	var spent time.Duration
	one := func() {
		env.exec(b, `INSERT INTO outbox (aggregatetype, aggregateid, type, payload)
			VALUES ('order', '1', 'OrderCreated', decode(repeat('ab', 500), 'hex'))`)
		committed := time.Now()
		fetches := client.PollFetches(context.Background())
		require.NoError(b, fetches.Err0())
		spent += time.Since(committed)
	}
	one()
	spent = 0
	b.ResetTimer()
	for range b.N {
		one()
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "µs/commit→consumer")
}

func relayCounter(left *int, done chan<- struct{}) func(relay.Delivered) {
	return func(relay.Delivered) { // called by one goroutine
		if *left--; *left == 0 {
			close(done)
		}
	}
}
