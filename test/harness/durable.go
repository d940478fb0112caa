package harness

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/schemas"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// Kafka gives clients of the pipeline's broker that end with the test.
func (e *Ebb) Kafka(opts ...kgo.Opt) (*kgo.Client, *kadm.Client) {
	e.t.Helper()
	a, _ := e.Addresses()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(a.Brokers...)}, opts...)...)
	require.NoError(e.t, err)
	e.t.Cleanup(c.Close)
	return c, kadm.NewClient(c)
}

// Group is the consumer group of a destination.
func Group(destination string) string { return "ebb." + destination }

// The groups that are no destination's.
const (
	CompensatorGroup = "ebb.compensator"
	ProducerGroup    = "ebb.producer"
)

// place is one partition of one reader.
type place struct {
	reader, topic string
	partition     int32
}

func (p place) String() string { return fmt.Sprintf("%s at %s/%d", p.reader, p.topic, p.partition) }

// offsets is I3, and that no outbox row is missing in Kafka (G1).
func (j *judge) offsets(e *Ebb) {
	client, admin := e.Kafka()
	records := Records(j.t, client, admin, schemas.TopicOrder, schemas.TopicCompensation, schemas.TopicSaga, schemas.TopicStep)
	journal := j.journalOffsets()
	groups, err := admin.ListGroups(context.Background())
	require.NoError(j.t, err)
	for _, group := range groups.Groups() {
		j.committed(admin, group, journal)
	}
	known := j.known()
	for p, next := range journal {
		for _, r := range records {
			if r.Topic == p.topic && r.Partition == p.partition && r.Offset < next {
				j.durable(p.reader, r, known)
			}
		}
	}
	j.published(records)
}

// committed compares what a group has told Kafka with what the journal has.
func (j *judge) committed(admin *kadm.Client, group string, journal map[place]int64) {
	if group == ProducerGroup || !strings.HasPrefix(group, "ebb.") {
		return // the order service keeps no offsets: I2 sees what it lost
	}
	got, err := admin.FetchOffsets(context.Background(), group)
	require.NoError(j.t, err)
	got.Each(func(o kadm.OffsetResponse) {
		p := place{group, o.Topic, o.Partition}
		if o.At > 0 && o.At > max(journal[p], j.start(p)) {
			j.breach("I3: %s: Kafka has %d, the journal %d", p, o.At, journal[p])
		}
	})
}

// start is where a destination begins: what is before was never its own.
func (j *judge) start(p place) (start int64) {
	err := j.db.QueryRow(context.Background(), `SELECT coalesce(min(start_offset), 0) FROM ebb.destination_offsets
WHERE name = $1 AND version = 1 AND topic = $2 AND partition = $3`, strings.TrimPrefix(p.reader, "ebb."), p.topic, p.partition).Scan(&start)
	require.NoError(j.t, err)
	return start
}

// planned tells whether a destination was there at a record's offset: not before it began, nor after it was removed.
func (j *judge) planned(p place, offset int64) bool {
	var in bool
	err := j.db.QueryRow(context.Background(), `SELECT NOT d.removed FROM ebb.destinations d
LEFT JOIN ebb.destination_offsets o ON o.name = d.name AND o.version = d.version AND o.topic = $2 AND o.partition = $3
WHERE d.name = $1 AND coalesce(o.start_offset, 0) <= $4 ORDER BY d.version DESC LIMIT 1`,
		strings.TrimPrefix(p.reader, "ebb."), p.topic, p.partition, offset).Scan(&in)
	if errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	require.NoError(j.t, err)
	return in
}

func (j *judge) journalOffsets() map[place]int64 {
	rows, err := j.db.Query(context.Background(), "SELECT reader, topic, partition, next_offset FROM ebb.offsets")
	require.NoError(j.t, err)
	out := map[place]int64{}
	var p place
	var next int64
	_, err = pgx.ForEachRow(rows, []any{&p.reader, &p.topic, &p.partition, &next}, func() error {
		out[p] = next
		return nil
	})
	require.NoError(j.t, err)
	return out
}

// known is what the journal has durable: steps by "destination id", dead letters by position, cancels by "cancel id", sagas that
// began to be unwound by "begin id", and the event types of destinations by "on name type".
func (j *judge) known() map[string]bool {
	out := map[string]bool{}
	for _, sql := range []string{
		`SELECT destination || ' ' || saga_id FROM ebb.steps`,
		`SELECT reader || ' ' || topic || ' ' || partition || ' ' || record_offset FROM ebb.dead_letters`,
		`SELECT 'begin ' || id FROM ebb.sagas WHERE state IN ('COMPENSATING', 'COMPENSATED')`,
		`SELECT 'entombed ' || aggregate_id FROM ebb.tombstones`,
		`SELECT 'on ' || name || ' ' || e FROM ebb.destinations, unnest(event_types) AS e WHERE version = 1`,
	} {
		rows, err := j.db.Query(context.Background(), sql)
		require.NoError(j.t, err)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(j.t, err)
		for _, text := range texts {
			out[text] = true
		}
	}
	return out
}

// durable finds a record behind a reader's offset that has left no trace: not in the journal, no dead letter, not to be skipped.
func (j *judge) durable(reader string, r *kgo.Record, known map[string]bool) {
	h := headers(r)
	id, eventType := h[schemas.HeaderID], h[schemas.HeaderEventType]
	if r.Value == nil || known[fmt.Sprintf("%s %s %d %d", reader, r.Topic, r.Partition, r.Offset)] {
		return
	}
	where := fmt.Sprintf("%s/%d@%d, %s of %s", r.Topic, r.Partition, r.Offset, eventType, r.Key)
	destination := strings.TrimPrefix(reader, "ebb.")
	switch {
	case reader == CompensatorGroup && eventType == schemas.EventOrderCancelled:
		if !known["entombed "+string(r.Key)] {
			j.breach("I3: %s has passed %s without a tombstone", reader, where)
		}
	case reader == CompensatorGroup:
	case known["on "+destination+" "+eventType] && j.planned(place{reader, r.Topic, r.Partition}, r.Offset):
		if !known[destination+" "+id] {
			j.breach("I3: %s has passed %s without a step", reader, where)
		}
	}
}

// published is the way out of the outbox: every committed row is a record.
func (j *judge) published(records []*kgo.Record) {
	seen := map[string]bool{}
	for _, r := range records {
		seen[headers(r)[schemas.HeaderID]] = true
	}
	for _, table := range []string{"orders.outbox", "ebb.outbox"} {
		rows, err := j.db.Query(context.Background(), "SELECT id::text, aggregatetype, type FROM "+table)
		require.NoError(j.t, err)
		var id, topic, eventType string
		_, err = pgx.ForEachRow(rows, []any{&id, &topic, &eventType}, func() error {
			if !seen[id] && topic != "deadletter" {
				j.breach("G1: %s %s (%s, %s) is not in Kafka", table, id, topic, eventType)
			}
			return nil
		})
		require.NoError(j.t, err)
	}
}

func headers(r *kgo.Record) map[string]string {
	out := make(map[string]string, len(r.Headers))
	for _, h := range r.Headers {
		out[h.Key] = string(h.Value)
	}
	return out
}

// Records reads topics from their first to their present last record.
func Records(t testing.TB, client *kgo.Client, admin *kadm.Client, topics ...string) []*kgo.Record {
	t.Helper()
	ctx := context.Background()
	starts, err := admin.ListStartOffsets(ctx, topics...)
	require.NoError(t, err)
	ends, err := admin.ListEndOffsets(ctx, topics...)
	require.NoError(t, err)
	from := map[string]map[int32]kgo.Offset{}
	left := map[place]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		start, _ := starts.Lookup(o.Topic, o.Partition)
		if o.Err != nil || o.Offset <= start.Offset {
			return
		}
		if from[o.Topic] == nil {
			from[o.Topic] = map[int32]kgo.Offset{}
		}
		from[o.Topic][o.Partition] = kgo.NewOffset().At(start.Offset)
		left[place{"", o.Topic, o.Partition}] = o.Offset
	})
	client.AddConsumePartitions(from)
	defer func() {
		for topic, partitions := range from {
			client.RemoveConsumePartitions(map[string][]int32{topic: slices.Collect(maps.Keys(partitions))})
		}
	}()
	var out []*kgo.Record
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for len(left) > 0 {
		fetches := client.PollFetches(limit)
		require.NoError(t, limit.Err(), "records are missing: %v", left)
		fetches.EachRecord(func(r *kgo.Record) {
			p := place{"", r.Topic, r.Partition}
			out = append(out, r)
			if r.Offset+1 >= left[p] {
				delete(left, p)
			}
		})
	}
	return out
}

// ForgetOffsets makes every group read everything again: it deletes the groups, as `kafka-consumer-groups --delete` does, and the
// journal's own offsets, as a restored journal would lack them. No consumer may be running; the infrastructure has to.
func ForgetOffsets(t testing.TB, e *Ebb) {
	t.Helper()
	_, admin := e.Kafka()
	testkit.Eventually(t, func() (bool, string) {
		groups, err := admin.ListGroups(context.Background())
		if err != nil {
			return false, err.Error()
		}
		left := ""
		for _, group := range groups.Groups() {
			if got, err := admin.DeleteGroup(context.Background(), group); err != nil || got.Err != nil {
				left += fmt.Sprintf("%s: %v %v; ", group, err, got.Err) // a member that was killed is still in it
			}
		}
		return left == "", left
	}, patience)
	_, err := e.DB().Exec(context.Background(), "DELETE FROM ebb.offsets")
	require.NoError(t, err)
}

// AwaitCaughtUp waits until all groups have read their topics to the end.
func AwaitCaughtUp(t testing.TB, e *Ebb) {
	t.Helper()
	_, admin := e.Kafka()
	names := []string{ProducerGroup, CompensatorGroup}
	rows, err := e.DB().Query(context.Background(), "SELECT DISTINCT name FROM ebb.destinations WHERE NOT removed")
	require.NoError(t, err)
	destinations, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for _, d := range destinations {
		names = append(names, Group(d))
	}
	testkit.Eventually(t, func() (bool, string) {
		for _, name := range names {
			lags, err := admin.Lag(context.Background(), name)
			if err != nil {
				return false, err.Error()
			}
			lag, ok := lags[name]
			switch {
			case !ok || lag.Error() != nil:
				return false, fmt.Sprintf("%s: %v", name, lag.Error())
			case lag.State != "Stable":
				return false, name + " is " + lag.State
			case lag.Lag.Total() > 0:
				return false, fmt.Sprintf("%s is %d records behind", name, lag.Lag.Total())
			}
		}
		return true, ""
	}, patience)
}

// Groups describes the groups with their members and what they are behind, for messages.
func Groups(e *Ebb) string {
	_, admin := e.Kafka()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lags, err := admin.Lag(ctx)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, g := range lags.Sorted() {
		fmt.Fprintf(&b, "%s: %s, %d behind, error %v\n", g.Group, g.State, g.Lag.Total(), g.Error())
		for _, m := range g.Members {
			fmt.Fprintf(&b, "  member %s\n", m.MemberID)
		}
		for _, l := range g.Lag.Sorted() {
			if l.Lag != 0 {
				member := "nobody"
				if l.Member != nil {
					member = l.Member.MemberID
				}
				fmt.Fprintf(&b, "  %s/%d: committed %d, end %d, read by %s\n", l.Topic, l.Partition, l.Commit.At, l.End.Offset, member)
			}
		}
	}
	return b.String()
}

// Rerun is I5: `ebb up` is stopped, all groups and offsets are forgotten, everything is read again, and neither a call nor an effect
// may come of it.
func Rerun(t testing.TB, e *Ebb, s *Sim) {
	t.Helper()
	AwaitCaughtUp(t, e)
	before := s.Stats()
	require.Zero(t, e.Stop(), "an orderly stop")
	infra := e.infrastructure()
	infra.AwaitReady()
	ForgetOffsets(t, infra)
	require.Zero(t, infra.Stop(), "an orderly stop")
	e.Restart()
	AwaitCaughtUp(t, e)
	after := s.Stats()
	require.Equal(t, before.Effects, after.Effects, "I5: reading everything again has had effects")
	require.Equal(t, before.Calls, after.Calls, "I5: reading everything again has made calls")
}

// infrastructure is `ebb infra` on the data of an `ebb up` that does not run.
func (e *Ebb) infrastructure() *Ebb {
	infra := &Ebb{t: e.t, opts: e.opts, roles: true, slot: e.slot, dsn: e.dsn, data: e.data, http: e.http, pools: e.pools}
	infra.opts.Args = nil
	infra.Process = newProcess(e.t, "infra of "+e.name, infra.args(), e.env)
	infra.start()
	return infra
}

// Canary is I4: a planted credential is in the requests, and nowhere else: not in what the children wrote, not in the data folder,
// not in any column of the database.
func Canary(t testing.TB, e *Ebb, secret string, written ...*Process) {
	t.Helper()
	for _, p := range append(written, e.Process) {
		require.NotContains(t, p.Output(), secret, "I4: in the output of %s", p.Name())
	}
	for _, where := range filesWith(t, e.data, secret) {
		t.Errorf("I4: in %s", where)
	}
	for _, where := range columnsWith(t, e, secret) {
		t.Errorf("I4: in column %s", where)
	}
}

// columnsWith looks at every text and bytea column of the pipeline's schemas.
func columnsWith(t testing.TB, e *Ebb, secret string) []string {
	ctx := context.Background()
	rows, err := e.DB().Query(ctx, `SELECT quote_ident(table_schema) || '.' || quote_ident(table_name), quote_ident(column_name), data_type
FROM information_schema.columns WHERE table_schema IN ('ebb', 'orders') AND data_type IN ('text', 'bytea', 'jsonb', 'ARRAY')`)
	require.NoError(t, err)
	type column struct{ table, name, kind string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Name, Kind string }])
	require.NoError(t, err)
	var found []string
	for _, c := range columns {
		col := column{c.Table, c.Name, c.Kind}
		sql := fmt.Sprintf("SELECT count(*) FROM %s WHERE position($1 in %s::text) > 0", col.table, col.name)
		arg := secret
		if col.kind == "bytea" {
			sql = fmt.Sprintf("SELECT count(*) FROM %s WHERE position($1 in encode(%s, 'hex')) > 0", col.table, col.name)
			arg = hex.EncodeToString([]byte(secret))
		}
		var n int
		require.NoError(t, e.DB().QueryRow(ctx, sql, arg).Scan(&n))
		if n > 0 {
			found = append(found, fmt.Sprintf("%s.%s (%d rows)", col.table, col.name, n))
		}
	}
	return found
}
