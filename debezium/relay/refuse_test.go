package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/debezium/relay"
	"github.com/ebbline/ebb/internal/testkit"
)

const row = `INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES (gen_random_uuid(), 'o', 'k', 't', '\x01')`

// runOnce streams one row and stops, so that the state topic knows the slot.
func (b *bundle) runOnce(t *testing.T) {
	t.Helper()
	r := b.start(t)
	b.exec(t, row)
	b.settled(t, "outbox.event.o")
	require.NoError(t, r.stop())
}

func (b *bundle) storeState(t *testing.T, slot, value string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cfg.Brokers...), kgo.AllowAutoTopicCreation())
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.ProduceSync(context.Background(),
		&kgo.Record{Topic: relay.DefaultStateTopic, Key: []byte(slot), Value: []byte(value)}).FirstErr())
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	topics := map[string]int32{"outbox.event.o": 1, "outbox.event.small": 1, relay.DefaultStateTopic: 1}
	tests := map[string]struct {
		prepare func(t *testing.T, b *bundle)
		want    any
	}{
		"a slot that does not exist": {func(t *testing.T, b *bundle) {
			b.cfg.Slot = testkit.Name(t, "other")
		}, new(*relay.SlotMissingError)},
		"a slot that was dropped and made again": {func(t *testing.T, b *bundle) {
			b.runOnce(t)
			b.exec(t, "SELECT pg_drop_replication_slot($1)", b.cfg.Slot)
			b.exec(t, row)
			b.exec(t, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", b.cfg.Slot)
		}, new(*relay.SlotAheadError)},
		"a slot that was moved forward": {func(t *testing.T, b *bundle) {
			b.runOnce(t)
			b.exec(t, row)
			b.exec(t, "SELECT pg_replication_slot_advance($1, pg_current_wal_lsn())", b.cfg.Slot)
		}, new(*relay.SlotAheadError)},
		"a slot of another plugin": {func(t *testing.T, b *bundle) {
			b.exec(t, "SELECT pg_drop_replication_slot($1)", b.cfg.Slot)
			b.exec(t, "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", b.cfg.Slot)
		}, new(*relay.SlotForeignError)},
		"another server": {func(t *testing.T, b *bundle) {
			b.storeState(t, b.cfg.Slot, `{"format":1,"slot":"s","systemId":"1","timeline":1,"database":"d","lsn":"F/0","at":"2026-01-01T00:00:00Z"}`)
		}, new(*relay.SystemChangedError)},
		"a slot that the state topic does not know": {func(t *testing.T, b *bundle) {
			b.storeState(t, "some_slot", `{}`)
		}, new(*relay.UnknownSlotError)},
		"a publication that does not exist": {func(_ *testing.T, b *bundle) {
			b.cfg.Publication = "none"
		}, new(*relay.PublicationError)},
		"a publication younger than the rows": {func(t *testing.T, b *bundle) {
			b.exec(t, "DROP PUBLICATION pub")
			b.exec(t, row)
			b.exec(t, "CREATE PUBLICATION pub FOR TABLE outbox WITH (publish = 'insert')")
		}, new(*relay.PublicationError)},
		"a column that does not exist": {func(t *testing.T, b *bundle) {
			b.cfg.Mapping.Placement = "nothing:header"
			b.exec(t, row)
		}, new(*relay.SchemaError)},
		"a column without an agreed text": {func(t *testing.T, b *bundle) {
			b.exec(t, "ALTER TABLE outbox ADD COLUMN n numeric")
			b.cfg.Mapping.Placement = "n:header"
			b.exec(t, row)
		}, new(*relay.SchemaError)},
		"a payload that is text": {func(t *testing.T, b *bundle) {
			b.cfg.Mapping.Payload = "type"
			b.exec(t, row)
		}, new(*relay.SchemaError)},
		"a partition that is text": {func(t *testing.T, b *bundle) {
			b.cfg.Mapping.Placement = "type:partition"
			b.exec(t, row)
		}, new(*relay.SchemaError)},
		"a topic name that Kafka does not take": {func(t *testing.T, b *bundle) {
			b.exec(t, "INSERT INTO outbox (id, aggregatetype) VALUES (gen_random_uuid(), 'a b')")
		}, new(*relay.PoisonError)},
		"a partition that the topic does not have": {func(t *testing.T, b *bundle) {
			b.exec(t, "ALTER TABLE outbox ADD COLUMN p int DEFAULT 9")
			b.cfg.Mapping.Placement = "p:partition"
			b.exec(t, row)
		}, new(*relay.PoisonError)},
		"a record larger than allowed": {func(t *testing.T, b *bundle) {
			b.cfg.MaxRecordBytes = 1 << 16
			b.exec(t, "INSERT INTO outbox (id, aggregatetype, payload) SELECT gen_random_uuid(), 'o', string_agg(uuid_send(gen_random_uuid()), '') FROM generate_series(1, 20000)")
		}, new(*relay.PoisonError)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, goldenTable, "type:header", topics)
			test.prepare(t, b)
			err := b.runToError(t)
			require.ErrorAs(t, err, test.want)
		})
	}
}

func TestAcceptUndoesARefusal(t *testing.T) {
	t.Parallel()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.o": 1})
	b.runOnce(t)
	b.exec(t, row)
	b.exec(t, "SELECT pg_replication_slot_advance($1, pg_current_wal_lsn())", b.cfg.Slot)
	require.Error(t, b.runToError(t))
	position, err := relay.Accept(context.Background(), b.cfg)
	require.NoError(t, err)
	require.Equal(t, b.cfg.Slot, position.Slot)
	b.runOnce(t)
}

func TestWaitsForASlotInUse(t *testing.T) {
	t.Parallel()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.o": 1})
	holder, err := pgx.Connect(context.Background(), b.dsn+"&replication=database&default_query_exec_mode=simple_protocol")
	require.NoError(t, err)
	read := holder.PgConn().Exec(context.Background(), fmt.Sprintf(
		`START_REPLICATION SLOT %s LOGICAL 0/0 (proto_version '1', publication_names 'pub')`, b.cfg.Slot))
	testkit.Eventually(t, func() (bool, string) {
		var active bool
		err := b.pool.QueryRow(context.Background(), "SELECT active FROM pg_replication_slots WHERE slot_name = $1", b.cfg.Slot).Scan(&active)
		return active, fmt.Sprint(err)
	}, 0)
	r := b.start(t)
	testkit.Eventually(t, func() (bool, string) {
		err := r.Healthy()
		return err != nil && containsAll(err.Error(), "in use", fmt.Sprint(holder.PgConn().PID())), fmt.Sprint(err)
	}, 0)
	b.exec(t, row)
	b.exec(t, "SELECT pg_terminate_backend($1)", holder.PgConn().PID())
	require.Len(t, b.read(t, "outbox.event.o", 1), 1)
	testkit.Eventually(t, func() (bool, string) { err := r.Healthy(); return err == nil, fmt.Sprint(err) }, 0)
	_ = read.Close()
	_ = holder.Close(context.Background())
}

// TestAnswersWhileKafkaIsBlocked holds Kafka for several times the server's patience.
func TestAnswersWhileKafkaIsBlocked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t, goldenTable, "type:header", map[string]int32{"outbox.event.o": 1})
	b.cfg.DSN += "&options=-c%20wal_sender_timeout%3D600ms"
	b.cfg.MaxRecordBytes, b.cfg.MaxBufferedBytes = 1<<16, 1<<16
	b.cfg.StatusInterval = 100 * time.Millisecond
	reconnects := make(chan error, 16)
	b.cfg.Hooks.OnReconnect = func(err error) { reconnects <- err }
	b.start(t)
	b.exec(t, row)
	b.settled(t, "outbox.event.o")

	release := blockProduce(b)
	defer release()
	b.exec(t, `INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload)
		SELECT gen_random_uuid(), 'o', 'k', 't', decode(repeat('ab', 1000), 'hex') FROM generate_series(1, 999)`)
	// The server hears from the relay for five times its timeout, by its own clock.
	testkit.Eventually(t, func() (bool, string) {
		var enough bool
		err := b.pool.QueryRow(ctx, `SELECT now() - backend_start > interval '3 s' FROM pg_stat_replication r
			JOIN pg_replication_slots s ON s.active_pid = r.pid WHERE s.slot_name = $1`, b.cfg.Slot).Scan(&enough)
		return err == nil && enough, fmt.Sprint(err)
	}, 0)
	require.Empty(t, reconnects)
	release()
	require.EqualValues(t, 1000, b.settled(t, "outbox.event.o"))
	require.Empty(t, reconnects)
}
