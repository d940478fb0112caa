package relay_test

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ebbline/ebb/debezium/relay"
	"github.com/ebbline/ebb/internal/postgresrun"
	"github.com/ebbline/ebb/internal/testkit"
)

func containsAll(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// blockProduce makes the cluster hold every produce request until release, and with it everything else.
func blockProduce(b *bundle) (release func()) {
	held := make(chan struct{})
	b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		<-held
		return nil, nil, false
	})
	return sync.OnceFunc(func() { close(held) })
}

func TestPartitionedTableAndUserTypes(t *testing.T) {
	t.Parallel()
	b := setup(t, `
		CREATE TYPE kind AS ENUM ('created', 'cancelled');
		CREATE DOMAIN amount AS bigint CHECK (VALUE > 0);
		CREATE TABLE outbox (id uuid PRIMARY KEY, aggregatetype varchar(20), aggregateid bigint, k kind, a amount, at timestamptz(3),
			payload bytea) PARTITION BY RANGE (id);
		CREATE TABLE outbox_a PARTITION OF outbox FOR VALUES FROM ('00000000-0000-0000-0000-000000000000') TO ('80000000-0000-0000-0000-000000000000');
		CREATE TABLE outbox_rest PARTITION OF outbox DEFAULT`,
		"k:header,a:header:amount,at:header", map[string]int32{"outbox.event.o": 1})
	b.start(t)
	insert := func(id string) {
		b.exec(t, `INSERT INTO outbox VALUES ($1, 'o', 9007199254740993, 'cancelled', 5, '2026-01-02 03:04:05.6789+00', '\x01')`, id)
	}
	insert("00000000-0000-7000-8000-000000000001")
	insert("ffffffff-0000-7000-8000-000000000002")
	b.exec(t, "CREATE TABLE later PARTITION OF outbox FOR VALUES FROM ('90000000-0000-0000-0000-000000000000') TO ('a0000000-0000-0000-0000-000000000000')")
	insert("90000000-0000-7000-8000-000000000003")
	b.exec(t, "DROP TABLE outbox_a") // its row is in the WAL
	require.EqualValues(t, 3, b.settled(t, "outbox.event.o"))
	r := b.read(t, "outbox.event.o", 3)[2]
	require.Equal(t, "9007199254740993", string(r.Key))
	require.Equal(t, []kgo.RecordHeader{
		{Key: "id", Value: []byte("90000000-0000-7000-8000-000000000003")},
		{Key: "k", Value: []byte("cancelled")}, {Key: "amount", Value: []byte("5")},
		{Key: "at", Value: []byte("2026-01-02T03:04:05.679Z")},
	}, r.Headers)
}

func TestPlacedPartition(t *testing.T) {
	t.Parallel()
	b := setup(t, `CREATE TABLE outbox (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregatetype text, aggregateid text, payload bytea, p int)`,
		"p:partition", map[string]int32{"outbox.event.o": 5})
	b.start(t)
	for _, p := range []any{3, 0, nil} {
		b.exec(t, "INSERT INTO outbox (aggregatetype, aggregateid, payload, p) VALUES ('o', '42', '\\x01', $1)", p)
	}
	got := map[int32]int{}
	for _, r := range b.read(t, "outbox.event.o", 3) {
		got[r.Partition]++
		require.Len(t, r.Headers, 1, "a placed partition is no header")
	}
	require.Equal(t, map[int32]int{3: 1, 0: 1, javaPartition([]byte("42"), 5): 1}, got)
}

func TestKeysGoWhereTheJavaClientPutsThem(t *testing.T) {
	t.Parallel()
	b := setup(t, goldenTable, "", map[string]int32{"outbox.event.o": 12})
	b.start(t)
	b.exec(t, "INSERT INTO outbox (id, aggregatetype, aggregateid) SELECT gen_random_uuid(), 'o', repeat(chr(1 + i * 37), i % 40) || i FROM generate_series(1, 300) i")
	for _, r := range b.read(t, "outbox.event.o", 300) {
		require.Equal(t, javaPartition(r.Key, 12), r.Partition, "key %q", r.Key)
	}
}

// TestIdleSlotMoves writes to tables that are not published: the slot must not hold their WAL.
func TestIdleSlotMoves(t *testing.T) {
	t.Parallel()
	b := setup(t, goldenTable, "", map[string]int32{"outbox.event.o": 1})
	b.start(t)
	b.exec(t, "CREATE TABLE other AS SELECT generate_series(1, 10000)")
	require.Zero(t, b.settled(t, "outbox.event.o"))
}

// TestInterleavedTransactionsAcrossARestart is the case that loses rows with Debezium 3.6: a transaction that began
// before the relay's last position goes on right at it, and commits after a restart.
func TestInterleavedTransactionsAcrossARestart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.o": 1})
	r := b.start(t)
	insert := "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES (gen_random_uuid(), 'o', 'k', $1, '')"
	long, err := b.pool.Begin(ctx)
	require.NoError(t, err)
	_, err = long.Exec(ctx, insert, "b1")
	require.NoError(t, err)
	b.exec(t, insert, "a1")
	_, err = long.Exec(ctx, insert, "b2")
	require.NoError(t, err)
	require.EqualValues(t, 1, b.settled(t, "outbox.event.o"))
	require.NoError(t, r.stop())
	b.start(t)
	require.NoError(t, long.Commit(ctx))
	require.EqualValues(t, 3, b.settled(t, "outbox.event.o"))
	var types []string
	for _, r := range b.read(t, "outbox.event.o", 3) {
		types = append(types, string(r.Headers[1].Value))
	}
	require.Equal(t, []string{"a1", "b1", "b2"}, types)
}

// TestTopicMadeLate waits for a topic without losing what came before it.
func TestTopicMadeLate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.other": 1})
	r := b.start(t)
	b.exec(t, row)
	testkit.Eventually(t, func() (bool, string) { return r.Progress().Records == 1, "no record waits" }, 0)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cfg.Brokers...))
	require.NoError(t, err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, "outbox.event.o")
	require.NoError(t, err)
	require.EqualValues(t, 1, b.settled(t, "outbox.event.o"))
}

func TestStopConfirmsWhatWasSent(t *testing.T) {
	t.Parallel()
	b := setup(t, goldenTable, "", map[string]int32{"outbox.event.o": 1})
	for range 3 {
		r := b.start(t)
		b.exec(t, row)
		n := len(b.read(t, "outbox.event.o", 1))
		require.NoError(t, r.stop())
		require.Positive(t, n)
	}
	r := b.start(t)
	require.EqualValues(t, 3, b.settled(t, "outbox.event.o"), "a clean stop and start sends nothing twice")
	require.NoError(t, r.stop())
	require.Error(t, r.Healthy())
}

func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.o": 4}, kfake.DataDir(dir))
	b.start(t)
	var wg sync.WaitGroup
	wg.Go(func() { b.write(t, 3000) })
	b.read(t, "outbox.event.o", 200)
	_, port, _ := strings.Cut(b.cfg.Brokers[0], ":")
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	b.cluster.Close()
	b.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(n), kfake.DataDir(dir))
	require.NoError(t, err)
	t.Cleanup(b.cluster.Close)
	wg.Wait()
	total := int(b.settled(t, "outbox.event.o"))
	b.checkDelivered(t, "outbox.event.o", total, 3000)
}

// TestStopIsBoundedWhileKafkaIsDown ends a relay whose Kafka is gone: what was on its way stays in the slot.
func TestStopIsBoundedWhileKafkaIsDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.o": 1}, kfake.DataDir(dir))
	b.cfg.Grace = 50 * time.Millisecond
	r := b.start(t)
	b.exec(t, row)
	b.settled(t, "outbox.event.o")
	_, port, _ := strings.Cut(b.cfg.Brokers[0], ":")
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	b.cluster.Close()
	b.exec(t, row)
	testkit.Eventually(t, func() (bool, string) {
		return r.Progress().Records > 0, "no record waits for Kafka"
	}, 0)
	require.NoError(t, r.stop())

	b.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(n), kfake.DataDir(dir))
	require.NoError(t, err)
	t.Cleanup(b.cluster.Close)
	again := b.start(t)
	require.EqualValues(t, 2, b.settled(t, "outbox.event.o"))
	require.NoError(t, again.stop())
}

// onOwnServer moves the bundle to a server that the test may restart and ruin. start starts it again, on the same port.
func (b *bundle) onOwnServer(t *testing.T) (server *postgresrun.Server, start func() *postgresrun.Server) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ebb-test-own-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	start = func() *postgresrun.Server {
		s, err := postgresrun.Start(context.Background(), postgresrun.Config{
			DataDir: dir, Logger: slog.New(slog.DiscardHandler), Settings: map[string]string{"shared_buffers": "32MB"}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Stop(context.Background()) }) // an error if the test has killed it
		b.dsn = s.DSN("postgres")
		b.pool = testkit.Pool(t, b.dsn)
		return s
	}
	server = start()
	b.dir, b.cfg.DSN = dir, b.dsn
	b.exec(t, goldenTable)
	b.exec(t, "CREATE PUBLICATION pub FOR TABLE outbox WITH (publish = 'insert')")
	b.exec(t, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", b.cfg.Slot)
	return server, start
}

// TestServerRestart restarts PostgreSQL, gently and by kill -9, while rows are written.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.o": 4})
	server, start := b.onOwnServer(t)
	b.start(t)
	b.write(t, 500)

	require.NoError(t, server.Stop(ctx), "a relay that is up must not hold the shutdown back")
	server = start()
	require.EqualValues(t, 500, b.settled(t, "outbox.event.o"), "a clean restart of the server sends nothing twice")
	b.exec(t, "DELETE FROM outbox")
	b.write(t, 500)

	require.NoError(t, syscall.Kill(postmaster(t, b.dir), syscall.SIGKILL))
	<-server.Done()
	start()
	b.exec(t, "DELETE FROM outbox")
	b.write(t, 500)
	total := int(b.settled(t, "outbox.event.o"))
	require.GreaterOrEqual(t, total, 1500)
	b.checkDelivered(t, "outbox.event.o", total, 500)
}

func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(dir + "/data/postmaster.pid")
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	require.NoError(t, err)
	return pid
}

// TestLostSlot makes the server throw away WAL that the slot needs.
func TestLostSlot(t *testing.T) {
	t.Parallel()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.o": 1})
	b.onOwnServer(t)
	b.exec(t, "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
	b.exec(t, "ALTER SYSTEM SET max_wal_size = '32MB'")
	b.exec(t, "ALTER SYSTEM SET min_wal_size = '32MB'")
	b.exec(t, "SELECT pg_reload_conf()")
	testkit.Eventually(t, func() (bool, string) {
		b.exec(t, "SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000)), pg_switch_wal()")
		b.exec(t, "CHECKPOINT")
		var status string
		err := b.pool.QueryRow(context.Background(), "SELECT wal_status FROM pg_replication_slots").Scan(&status)
		return err == nil && status == "lost", status
	}, 0)
	var lost *relay.SlotLostError
	require.ErrorAs(t, b.runToError(t), &lost)
}
