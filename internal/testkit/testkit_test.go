package testkit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestDBIsEmptyAndOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a, b := testkit.Pool(t, testkit.DB(t)), testkit.Pool(t, testkit.DB(t))
	_, err := a.Exec(ctx, "CREATE TABLE only_here (x int)")
	require.NoError(t, err)
	var tables int
	require.NoError(t, b.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE tablename = 'only_here'").Scan(&tables))
	require.Zero(t, tables)
	var wal, commit string
	require.NoError(t, b.QueryRow(ctx, "SELECT current_setting('wal_level'), current_setting('synchronous_commit')").Scan(&wal, &commit))
	require.Equal(t, "logical", wal)
	require.Equal(t, "on", commit)
}

func TestDBIsDroppedWithItsSlotsAndConnections(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var dsn string
	slot := testkit.Name(t, "slot")
	t.Run("uses a slot and keeps a connection open", func(t *testing.T) {
		dsn = testkit.DB(t)
		pool := testkit.Pool(t, dsn)
		_, err := pool.Exec(ctx, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", slot)
		require.NoError(t, err)
	})
	other := testkit.Pool(t, testkit.DB(t))
	var slots int
	require.NoError(t, other.QueryRow(ctx, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1", slot).Scan(&slots))
	require.Zero(t, slots)
	require.Error(t, testkit.Pool(t, dsn).Ping(ctx))
}

func TestKafkaHasItsTopicsOnly(t *testing.T) {
	t.Parallel()
	brokers := testkit.Kafka(t, map[string]int32{"orders": 3})
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic("orders"))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.ProduceSync(context.Background(), kgo.StringRecord("x")).FirstErr())
}

func TestEventuallyReturnsWhenTrue(t *testing.T) {
	t.Parallel()
	n := 0
	testkit.Eventually(t, func() (bool, string) { n++; return n == 3, "counting" }, 0)
	require.Equal(t, 3, n)
}
