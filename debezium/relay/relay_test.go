package relay_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/debezium/cdc"
	"github.com/ebbline/ebb/debezium/relay"
	"github.com/ebbline/ebb/internal/testkit"
)

func TestMain(m *testing.M) {
	runChild()
	testkit.Main(m)
}

const goldenTable = `CREATE TABLE outbox (
	id uuid PRIMARY KEY, aggregatetype text NOT NULL, aggregateid text, type text, payload bytea,
	hdr_b bytea, hdr_i bigint, hdr_bool boolean, hdr_json jsonb, hdr_null text)`

const goldenPlacement = "type:header:eventType, hdr_b:header,hdr_i:header,hdr_bool:header,hdr_json:header,hdr_null:header"

// bundle is a database with an outbox, a slot and a Kafka cluster.
type bundle struct {
	dsn     string
	dir     string // of the server, if it is the test's own
	pool    *pgxpool.Pool
	cluster *kfake.Cluster
	cfg     relay.Config
}

// setup makes the table public.outbox by ddl, its publication and its slot.
func setup(t testing.TB, ddl, placement string, topics map[string]int32, opts ...kfake.Opt) *bundle {
	t.Helper()
	ctx := context.Background()
	b := &bundle{dsn: testkit.DB(t)}
	b.pool = testkit.Pool(t, b.dsn)
	b.cluster = testkit.KafkaCluster(t, topics, append([]kfake.Opt{
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": "8388608"})}, opts...)...)
	b.exec(t, ddl)
	b.cfg = relay.Config{
		DSN: b.dsn, Slot: testkit.Name(t, "slot"), Publication: "pub",
		Brokers:        b.cluster.ListenAddrs(),
		KafkaOptions:   []kgo.Opt{kgo.MetadataMinAge(10 * time.Millisecond)},
		Mapping:        relay.Mapping{Tables: []string{"public.outbox"}, Placement: placement},
		StatusInterval: 20 * time.Millisecond,
		Grace:          5 * time.Second,
		Logger:         slog.New(slog.DiscardHandler),
	}
	conn, err := pgx.Connect(ctx, b.dsn)
	require.NoError(t, err)
	_, err = cdc.Setup(ctx, conn, cdc.Config{Publication: "pub", Slot: b.cfg.Slot, Tables: []string{"public.outbox"}})
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	return b
}

func (b *bundle) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(context.Background(), sql, args...)
	require.NoError(t, err)
}

// running is a relay in the background.
type running struct {
	*relay.Relay
	stop func() error // ends it and gives what Run returned
	done <-chan struct{}
}

func (b *bundle) start(t testing.TB) *running {
	t.Helper()
	r, err := relay.New(b.cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var runErr error
	go func() {
		defer close(done)
		runErr = r.Run(ctx)
	}()
	stop := sync.OnceValue(func() error {
		cancel()
		<-done
		return runErr
	})
	t.Cleanup(func() { _ = stop() })
	return &running{Relay: r, stop: stop, done: done}
}

// runToError runs a relay that must refuse.
func (b *bundle) runToError(t testing.TB) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := relay.Run(ctx, b.cfg)
	require.NoError(t, ctx.Err(), "the relay went on instead of refusing")
	return err
}

// read takes n records of a topic from its start, in order within each partition.
func (b *bundle) read(t testing.TB, topic string, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err0(), "after %d of %d records", len(records), n)
		records = append(records, fetches.Records()...)
	}
	return records
}

// settled waits until the relay has confirmed the whole WAL up to now, and gives the number of records in a topic.
func (b *bundle) settled(t testing.TB, topic string) int64 {
	t.Helper()
	var now string
	require.NoError(t, b.pool.QueryRow(context.Background(), "SELECT pg_current_wal_lsn()").Scan(&now))
	b.exec(t, "CHECKPOINT") // something after it, so that the server moves beyond
	testkit.Eventually(t, func() (bool, string) {
		var confirmed string
		var past bool
		err := b.pool.QueryRow(context.Background(),
			"SELECT confirmed_flush_lsn, confirmed_flush_lsn >= $2 FROM pg_replication_slots WHERE slot_name = $1", b.cfg.Slot, now).
			Scan(&confirmed, &past)
		return err == nil && past, "slot at " + confirmed + ", wanted " + now
	}, 0)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...))
	require.NoError(t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(context.Background(), topic)
	require.NoError(t, err)
	var n int64
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

func TestGoldenVector(t *testing.T) {
	t.Parallel()
	b := setup(t, goldenTable, goldenPlacement, map[string]int32{"outbox.event.Order": 12})
	b.start(t)
	b.exec(t, `INSERT INTO outbox VALUES ('4d47e190-0402-4048-bc2c-89dd54343cdc', 'Order', '42', 'OrderCreated',
		'\x000000000702ff', '\x0102fe', 9007199254740993, true, '{"a":1}', NULL)`)
	r := b.read(t, "outbox.event.Order", 1)[0]
	require.Equal(t, []byte("42"), r.Key)
	require.Equal(t, []byte{0, 0, 0, 0, 7, 2, 0xff}, r.Value)
	require.Equal(t, []kgo.RecordHeader{
		{Key: "id", Value: []byte("4d47e190-0402-4048-bc2c-89dd54343cdc")},
		{Key: "eventType", Value: []byte("OrderCreated")},
		{Key: "hdr_b", Value: []byte("AQL+")},
		{Key: "hdr_i", Value: []byte("9007199254740993")},
		{Key: "hdr_bool", Value: []byte("true")},
		{Key: "hdr_json", Value: []byte(`{"a": 1}`)},
		{Key: "hdr_null"},
	}, r.Headers)
	require.Nil(t, r.Headers[6].Value, "NULL is a header with a null value")
	require.EqualValues(t, javaPartition([]byte("42"), 12), r.Partition)
	require.WithinDuration(t, time.Now(), r.Timestamp, time.Hour, "the record has the relay's own time")
}

func TestRowsAndBytes(t *testing.T) {
	t.Parallel()
	const topic = "outbox.event.o"
	insert := func(id, key, payload string) string {
		return "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES (" +
			"'00000000-0000-7000-8000-0000000000" + id + "', 'o', " + key + ", 't', " + payload + ")"
	}
	big := strings.Repeat("ab", 1<<20)
	tests := map[string]struct {
		sql   []string // one transaction each
		ids   []string // last two digits, in order
		key   []byte
		value []byte
	}{
		"null payload is a tombstone":         {sql: []string{insert("01", "'k'", "NULL")}, ids: []string{"01"}, key: []byte("k"), value: nil},
		"empty payload is an empty value":     {sql: []string{insert("01", "'k'", `'\x'`)}, ids: []string{"01"}, key: []byte("k"), value: []byte{}},
		"null key is no key":                  {sql: []string{insert("01", "NULL", `'\x01'`)}, ids: []string{"01"}, key: nil, value: []byte{1}},
		"empty key is an empty key":           {sql: []string{insert("01", "''", `'\x01'`)}, ids: []string{"01"}, key: []byte{}, value: []byte{1}},
		"a key in any script is raw UTF-8":    {sql: []string{insert("01", "'заказ-七'", `'\x01'`)}, ids: []string{"01"}, key: []byte("заказ-七"), value: []byte{1}},
		"a payload of one MiB":                {sql: []string{insert("01", "'k'", `'\x`+big+"'")}, ids: []string{"01"}, key: []byte("k"), value: []byte(strings.Repeat("\xab", 1<<20))},
		"two rows keep their statement order": {sql: []string{insert("02", "'k'", `'\x01'`) + ";" + insert("01", "'k'", `'\x01'`)}, ids: []string{"02", "01"}, key: []byte("k"), value: []byte{1}},
		"an update publishes nothing": {
			sql: []string{insert("01", "'k'", `'\x01'`), "UPDATE outbox SET type = 'u'"}, ids: []string{"01"}, key: []byte("k"), value: []byte{1}},
		"a changed primary key publishes nothing": {
			sql: []string{insert("01", "'k'", `'\x01'`), "UPDATE outbox SET id = gen_random_uuid()"}, ids: []string{"01"}, key: []byte("k"), value: []byte{1}},
		"a delete publishes nothing": {
			sql: []string{insert("01", "'k'", `'\x01'`), "DELETE FROM outbox"}, ids: []string{"01"}, key: []byte("k"), value: []byte{1}},
		"a truncate publishes nothing": {
			sql: []string{insert("01", "'k'", `'\x01'`), "TRUNCATE outbox"}, ids: []string{"01"}, key: []byte("k"), value: []byte{1}},
		"insert and delete in one transaction publish once": {
			sql: []string{insert("01", "'k'", `'\x01'`) + "; DELETE FROM outbox"}, ids: []string{"01"}, key: []byte("k"), value: []byte{1}},
		"a rollback publishes nothing": {
			sql: []string{"BEGIN;" + insert("01", "'k'", `'\x01'`) + "; ROLLBACK", insert("02", "'k'", `'\x02'`)}, ids: []string{"02"}, key: []byte("k"), value: []byte{2}},
		"a rolled back savepoint publishes nothing": {
			sql: []string{"BEGIN; SAVEPOINT s;" + insert("01", "'k'", `'\x01'`) + "; ROLLBACK TO s;" + insert("02", "'k'", `'\x02'`) + "; COMMIT"},
			ids: []string{"02"}, key: []byte("k"), value: []byte{2}},
		"a column added in the stream changes nothing": {
			sql: []string{insert("01", "'k'", `'\x01'`), "ALTER TABLE outbox ADD COLUMN x int DEFAULT 7", insert("02", "'k'", `'\x01'`)},
			ids: []string{"01", "02"}, key: []byte("k"), value: []byte{1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, goldenTable, "type:header", map[string]int32{topic: 3})
			b.start(t)
			for _, sql := range test.sql {
				b.exec(t, sql)
			}
			require.EqualValues(t, len(test.ids), b.settled(t, topic))
			for i, r := range b.read(t, topic, len(test.ids)) {
				require.Equal(t, "00000000-0000-7000-8000-0000000000"+test.ids[i], string(r.Headers[0].Value))
				require.Equal(t, test.key, r.Key)
				require.Equal(t, test.key == nil, r.Key == nil, "null and empty differ")
				require.Equal(t, test.value, r.Value)
				require.Equal(t, test.value == nil, r.Value == nil, "null and empty differ")
			}
		})
	}
}
