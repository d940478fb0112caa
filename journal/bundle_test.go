package journal

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/journal/saga"
)

// testBundle is a store on a database of its own.
type testBundle struct {
	*Store
	t    *testing.T
	pool *pgxpool.Pool
	// offset of the next record, by partition 0 of topic "orders".
	offset atomic.Int64
}

// typeEncoder stands in for the codec: the payload is the Go type's name.
type typeEncoder struct{}

func (typeEncoder) Encode(_ context.Context, v any) ([]byte, error) {
	return fmt.Appendf(nil, "%T", v), nil
}

func setup(t *testing.T, dests ...Destination) *testBundle {
	t.Helper()
	dsn := testkit.DB(t)
	require.NoError(t, Migrate(t.Context(), dsn))
	pool := testkit.Pool(t, dsn)
	s, err := Open(Config{Pool: pool, Encoder: typeEncoder{}})
	require.NoError(t, err)
	b := &testBundle{Store: s, t: t, pool: pool}
	if len(dests) > 0 {
		_, err := s.Apply(t.Context(), dests, noEnds, FromEarliest, false)
		require.NoError(t, err)
	}
	return b
}

func noEnds(context.Context) (map[TopicPartition]int64, error) { return nil, nil }

// dest is a destination of OrderCreated that repeats safely and waits for nothing.
func dest(name string, after ...string) Destination {
	return Destination{
		Name: name, Hash: name + "-v1", Source: []byte("destination: " + name), EventTypes: []string{"OrderCreated"},
		Rules: saga.Rules{After: after, Idempotency: saga.Idempotent, MaxAttempts: 4, MaxUndoAttempts: 8},
	}
}

func (d Destination) on(types ...string) Destination { d.EventTypes = types; return d }

func eventID(n int) saga.ID {
	var id saga.ID
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	id[6], id[8] = 0x70, 0x80
	return id
}

func event(n int, eventType string, order string, version int64) *Event {
	return &Event{
		ID: eventID(n), Type: eventType, Aggregate: Key{"order", order}, Version: version,
		Payload: []byte("avro"), Body: []byte(`{"orderId":` + strconv.Quote(order) + `}`),
	}
}

// read takes in events as the reader of one destination.
func (b *testBundle) read(dest string, events ...*Event) Ingested {
	b.t.Helper()
	var records []Record
	for _, e := range events {
		records = append(records, Record{Position: Position{"orders", 0, b.offset.Add(1)}, Event: e})
	}
	got, err := b.Ingest(b.t.Context(), Intake{Reader: reader(dest), Records: records})
	require.NoError(b.t, err)
	return got[0]
}

func reader(dest string) Reader { return Reader{Name: "ebb." + dest, Destination: dest} }

// claim takes what is due at the destination.
func (b *testBundle) claim(dest string) []Claimed {
	b.t.Helper()
	got, err := b.Claim(b.t.Context(), ClaimRequest{
		Destination: dest, Worker: "w1", Limit: 100, Lease: time.Minute,
		Prepare: func(_ context.Context, c Candidate) Prepared { return Prepared{Content: []byte("call " + c.Dest)} },
	})
	require.NoError(b.t, err)
	return got.Claimed
}

// end records one claim's end.
func (b *testBundle) end(c Claimed, r saga.Result) error {
	b.t.Helper()
	m := Recording{Claimed: c, Worker: "w1", Result: r, Exchange: Exchange{Sent: true, Status: 200, Body: []byte("reply of " + c.Dest), Started: time.Now()}}
	if r.Revert == saga.RevertPinned {
		m.Undo = []byte("undo " + c.Dest)
	}
	errs, err := b.Record(b.t.Context(), []Recording{m})
	require.NoError(b.t, err)
	return errs[0]
}

var yes = saga.Result{Class: saga.ClassSucceeded, Revert: saga.RevertPinned}

// do claims and ends one step.
func (b *testBundle) do(dest string, r saga.Result) Claimed {
	b.t.Helper()
	got := b.claim(dest)
	require.Len(b.t, got, 1, "claims at %s", dest)
	require.NoError(b.t, b.end(got[0], r))
	return got[0]
}

func (b *testBundle) saga(n int) SagaView {
	b.t.Helper()
	v, err := b.SagaOf(b.t.Context(), eventID(n))
	require.NoError(b.t, err)
	return v
}

// state gives "STATE" of a saga's step.
func (v SagaView) state(dest, dir string) string {
	for _, s := range v.Steps {
		if s.Destination == dest && s.Direction == dir {
			return s.State
		}
	}
	return ""
}

// published lists the types in ebb.outbox, in the order of their ids.
func (b *testBundle) published() []string {
	b.t.Helper()
	return b.texts("SELECT type FROM ebb.outbox ORDER BY id")
}

// actions lists the operators' moves, in their order.
func (b *testBundle) actions() []string {
	b.t.Helper()
	return b.texts("SELECT who || ': ' || action || ': ' || reason FROM ebb.operator_actions ORDER BY id")
}

// texts gives the rows of a query for one text column.
func (b *testBundle) texts(query string) []string {
	b.t.Helper()
	rows, err := b.pool.Query(b.t.Context(), query)
	require.NoError(b.t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return out
}
