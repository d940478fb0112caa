package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ebbline/ebb/journal/saga"
)

// need says which sagas of an aggregate a transition is about, beside those that concern it anyway.
type need struct {
	key Key
	// saga is what the transition is about; zero for none.
	saga saga.ID
	// from asks for all sagas of this version and later.
	from int64
}

// Versions that need.from takes beside real ones.
const (
	wholeHistory = 0
	noHistory    = math.MaxInt64

	noHistoryText = "9223372036854775807"
)

// about is the need of a transition of one saga.
func about(k Key, id saga.ID) need { return need{k, id, noHistory} }

// load is what the load statements of a unit bring, before it is put together.
type load struct {
	now      pgtype.Timestamptz
	seq      int64
	revision int64
	paused   []string
	rows     []loadedRow
	tombs    []loadedTombstone
	// few counts the sagas of each aggregate that was asked for with a limit.
	few map[Key]map[saga.ID]bool
}

// loadedRow is one step with its saga.
type loadedRow struct {
	key  Key
	saga *saga.Saga
	step *saga.Step
}

type loadedTombstone struct {
	key     Key
	version int64
}

// longHistory is the number of sagas up to which an aggregate is loaded whole, by one look-up; beyond it is chosen.
const longHistory = 6

const (
	nowSQL = `SELECT clock_timestamp(), nextval('ebb.completion'), (SELECT count(*) FROM ebb.destinations),
	ARRAY(SELECT name FROM ebb.paused_destinations)`

	sagaColumns = `s.aggregate_type, s.aggregate_id, s.id, s.event_type, s.role, s.aggregate_version, s.state, s.revision,
	s.attention, s.reason, s.cancel_version, s.failing_since`

	stepColumns = `t.destination, t.direction, t.state, t.maybe, t.attempt, t.epoch, t.worker, t.lease_until, t.next_attempt_at,
	t.first_attempt_at, t.first_sent_at, t.expect_by, t.seq, t.spec_version, t.late, t.superseded, t.outage, t.revert, t.outcome, t.reason,
	t.asking, t.sent_until`

	// The newest sagas, one more than is loaded whole.
	fewSQL = `SELECT ` + sagaColumns + `, ` + stepColumns + `
FROM unnest($1::text[], $2::text[]) AS k (t, i)
CROSS JOIN LATERAL (
	SELECT * FROM ebb.sagas s WHERE s.aggregate_type = k.t AND s.aggregate_id = k.i ORDER BY s.aggregate_version DESC LIMIT $3
) AS s
JOIN ebb.steps t ON t.saga_id = s.id
ORDER BY s.id, t.place`

	// concern is which sagas of a long history may decide or be changed by a transition of another one: see saga.Aggregate.Sagas.
	concern = `(s.state IN ('RUNNING', 'FAILING', 'COMPENSATING') OR s.attention <> '' OR s.late_open OR (s.role = 'create' AND s.state = 'COMPENSATED'))`

	// Of a long history: what concerns, what the transition is about, what it asks for by version, and what is later than an open
	// create. Each part is told to be worked out by itself: joined freely, the planner may read histories whole.
	chosenSQL = `WITH k AS MATERIALIZED (
	SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS k (t, i, v)
), concerned AS MATERIALIZED (
	SELECT s.id, s.aggregate_type, s.aggregate_id, s.aggregate_version, s.role, s.state
	FROM k JOIN ebb.sagas s ON s.aggregate_type = k.t AND s.aggregate_id = k.i WHERE ` + concern + `
), opened AS MATERIALIZED (
	SELECT aggregate_type, aggregate_id, min(aggregate_version) AS v FROM concerned
	WHERE role = 'create' AND state <> 'COMPENSATED' GROUP BY aggregate_type, aggregate_id
), chosen AS MATERIALIZED (
	SELECT id FROM concerned
	UNION
	SELECT id FROM unnest($4::uuid[]) AS id
	UNION
	SELECT s.id FROM k JOIN ebb.sagas s ON s.aggregate_type = k.t AND s.aggregate_id = k.i AND s.aggregate_version >= k.v
	WHERE k.v < ` + noHistoryText + `
	UNION
	SELECT s.id FROM opened o JOIN ebb.sagas s
	ON s.aggregate_type = o.aggregate_type AND s.aggregate_id = o.aggregate_id AND s.aggregate_version > o.v
)
SELECT ` + sagaColumns + `, ` + stepColumns + `
FROM chosen c JOIN ebb.sagas s ON s.id = c.id JOIN ebb.steps t ON t.saga_id = s.id
ORDER BY s.id, t.place`

	tombstonesSQL = `SELECT d.aggregate_type, d.aggregate_id, d.version
FROM unnest($1::text[], $2::text[]) AS k (t, i)
JOIN ebb.tombstones d ON d.aggregate_type = k.t AND d.aggregate_id = k.i`
)

// queueLoad adds the statements that load the expected aggregates: whole where their history is short, chosen where it is known to be
// long.
func (u *unit) queueLoad(b *pgx.Batch) *load {
	l := &load{few: map[Key]map[saga.ID]bool{}}
	b.Queue(nowSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&l.now, &l.seq, &l.revision, &l.paused) })
	if len(u.keys) == 0 {
		return l
	}
	var few, long []Key
	for _, k := range u.keys {
		if u.store.histories.long(k) {
			long = append(long, k)
		} else {
			few = append(few, k)
			l.few[k] = map[saga.ID]bool{}
		}
	}
	if len(few) > 0 {
		types, ids := columnsOf(few)
		b.Queue(fewSQL, types, ids, u.store.histories.whole+1).Query(l.collect)
	}
	u.queueChosen(b, l, long)
	types, ids := columnsOf(u.keys)
	b.Queue(tombstonesSQL, types, ids).Query(func(rows pgx.Rows) (err error) {
		l.tombs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t loadedTombstone, err error) {
			return t, row.Scan(&t.key.Type, &t.key.ID, &t.version)
		})
		return err
	})
	return l
}

// queueChosen adds the statement that loads parts of long histories.
func (u *unit) queueChosen(b *pgx.Batch, l *load, keys []Key) {
	if len(keys) == 0 {
		return
	}
	types, ids := columnsOf(keys)
	from := make([]int64, len(keys))
	var targets []pgtype.UUID
	for i, k := range keys {
		from[i] = noHistory
		for _, n := range u.needs[k] {
			from[i] = min(from[i], n.from)
			if !n.saga.IsZero() {
				targets = append(targets, pgtype.UUID{Bytes: n.saga, Valid: true})
			}
		}
	}
	b.Queue(chosenSQL, types, ids, from, targets).Query(l.collect)
}

func columnsOf(keys []Key) (types, ids []string) {
	types, ids = make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		types[i], ids[i] = k.Type, k.ID
	}
	return types, ids
}

// longOnes takes the aggregates out of the load that turned out to have a long history, and remembers them.
func (u *unit) longOnes(l *load) []Key {
	var out []Key
	for k, sagas := range l.few {
		if len(sagas) > u.store.histories.whole {
			out = append(out, k)
			u.store.histories.remember(k)
		}
	}
	if len(out) > 0 {
		l.rows = slices.DeleteFunc(l.rows, func(r loadedRow) bool { return len(l.few[r.key]) > u.store.histories.whole })
	}
	return out
}

// finish loads what the first look could not tell to be needed, and puts everything together.
func (u *unit) finish(ctx context.Context, l *load) error {
	if long := u.longOnes(l); len(long) > 0 {
		b := &pgx.Batch{}
		u.queueChosen(b, l, long)
		if err := u.tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("load long histories: %w", err)
		}
	}
	u.assemble(ctx, l)
	return nil
}

// collect reads joined rows; consecutive rows of a saga share it.
func (l *load) collect(rows pgx.Rows) error {
	var last *saga.Saga
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return err
		}
		if last != nil && last.ID == r.saga.ID {
			r.saga = last
		}
		last = r.saga
		if seen := l.few[r.key]; seen != nil {
			seen[r.saga.ID] = true
		}
		l.rows = append(l.rows, r)
	}
	return rows.Err()
}

func scanRow(rows pgx.Rows) (loadedRow, error) {
	out := loadedRow{saga: &saga.Saga{}, step: &saga.Step{}}
	s, t := out.saga, out.step
	var role, state, dir, stepState, revert string
	var failing, lease, due, first, sent, expect, until pgtype.Timestamptz
	err := rows.Scan(&out.key.Type, &out.key.ID, (*[16]byte)(&s.ID), &s.EventType, &role, &s.Version, &state, &s.Revision,
		&s.Attention, &s.Reason, &s.CancelVersion, &failing,
		&t.Dest, &dir, &stepState, &t.Maybe, &t.Attempt, &t.Epoch, &t.Worker, &lease, &due,
		&first, &sent, &expect, &t.Seq, &t.SpecVersion, &t.Late, &t.Superseded, &t.Outage, &revert, &t.Outcome, &t.Reason,
		&t.Asking, &until)
	if err != nil {
		return out, err
	}
	s.FailingSince = instant(failing)
	t.Lease, t.Due, t.FirstAttempt = instant(lease), instant(due), instant(first)
	t.FirstSent, t.ExpectBy, t.SentUntil = instant(sent), instant(expect), instant(until)
	var errs [5]error
	s.Role, errs[0] = saga.ParseRole(role)
	s.State, errs[1] = saga.ParseState(state)
	t.Dir, errs[2] = saga.ParseDirection(dir)
	t.State, errs[3] = saga.ParseStepState(stepState)
	t.Revert, errs[4] = saga.ParseRevert(revert)
	return out, errors.Join(errs[:]...)
}

// assemble puts the loaded rows into aggregates, with the rules of each step's version, and keeps an image for the diff.
func (u *unit) assemble(ctx context.Context, l *load) {
	u.env = saga.Env{Now: instant(l.now), Jitter: jitter}
	u.revision = l.revision
	for _, name := range l.paused {
		u.paused[name] = true
	}
	seen := make(map[*saga.Saga]bool, len(l.rows))
	for _, row := range l.rows {
		owner := u.aggs[row.key]
		if owner == nil {
			continue // a saga that was asked for belongs to another aggregate: its id is all that was known of it
		}
		if !seen[row.saga] {
			seen[row.saga] = true
			owner.agg.Sagas = append(owner.agg.Sagas, row.saga)
		}
		rules, err := u.store.rulesOf(ctx, row.step.Dest, row.step.SpecVersion)
		if err != nil {
			owner.err = fmt.Errorf("saga %s: %w", row.saga.ID, err)
		}
		row.step.Rules = rules
		row.saga.Steps = append(row.saga.Steps, row.step)
	}
	for _, row := range l.tombs {
		u.aggs[row.key].agg.Tombstone = row.version
	}
	for _, a := range u.aggs {
		a.agg.SeqBase = l.seq
		a.agg.Sort()
		for _, s := range a.agg.Sagas {
			a.sagas[s.ID] = imageOf(s)
		}
	}
}

func imageOf(s *saga.Saga) sagaImage {
	img := sagaImage{head: *s, steps: make([]saga.Step, len(s.Steps)), lateOpen: s.LateOpen()}
	img.head.Steps = nil
	for i, t := range s.Steps {
		img.steps[i] = *t
	}
	return img
}

func instant(t pgtype.Timestamptz) saga.Instant {
	if !t.Valid {
		return 0
	}
	return saga.At(t.Time)
}

func timestamp(i saga.Instant) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: i.Time(), Valid: i != 0}
}
