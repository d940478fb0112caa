package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/internal/failpoint"
	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/producer/outbox"
)

// unit is one transaction over locked aggregates.
type unit struct {
	store *Store
	tx    pgx.Tx
	env   saga.Env
	aggs  map[Key]*loaded
	// scopes are the destinations whose transitions these are, or what the compensator does, for failpoints; claims are those that
	// claimed beside it.
	scopes, claims []string
	// keys are the locked aggregates in a fixed order, so that what is written does not depend on the order of a map.
	keys []Key
	// needs are what transitions are about, by aggregate.
	needs map[Key][]need
	// revision of the destinations that this transaction sees.
	revision int64
	rows     rows
	// paused are the destinations that nothing is claimed for.
	paused map[string]bool
	// evidence is what published step events carry, by step.
	evidence map[stepKey]evidence
	// emitted counts the events of this transaction.
	emitted int64
	// tombs are the cancels to keep.
	tombs map[Key]*Cancel
	// settled are the replies of do steps that this transaction settles.
	settled map[replyKey]Response
	// waiting are the events of this transaction that wait at the destination that read them.
	waiting map[saga.ID]eventText
	// ready collects the destinations that have got something to claim.
	ready map[string]bool
}

// loaded is an aggregate with an image of how it was.
type loaded struct {
	agg   *saga.Aggregate
	sagas map[saga.ID]sagaImage
	// err tells why the aggregate could not be put together; it must not be changed then.
	err error
}

type sagaImage struct {
	head     saga.Saga
	steps    []saga.Step
	lateOpen bool
}

type stepKey struct {
	saga saga.ID
	dest string
	dir  saga.Direction
}

// begin opens a transaction: first runs, then the aggregates are locked and loaded, all in one round trip.
func (s *Store) begin(ctx context.Context, conn *pgxpool.Conn, needs []need, first func(*pgx.Batch)) (*unit, error) {
	u := s.newUnit()
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	if first != nil {
		first(b)
	}
	if hashes := u.expect(needs); len(hashes) > 0 && !s.skipLock {
		b.Queue("SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) AS k", hashes)
	}
	l := u.queueLoad(b)
	results := conn.SendBatch(ctx, b)
	u.tx = results.Tx()
	if err := results.Close(); err != nil {
		u.rollback(ctx)
		return nil, fmt.Errorf("lock and load: %w", err)
	}
	if err := u.finish(ctx, l); err != nil {
		u.rollback(ctx)
		return nil, err
	}
	return u, nil
}

// transact runs one transition of the aggregates: lock and load, decide, write. An error of decide leaves no trace.
func (s *Store) transact(ctx context.Context, name string, needs []need, decide func(u *unit) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer conn.Release()
	u, err := s.begin(ctx, conn, needs, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := decide(u); err != nil {
		u.rollback(ctx)
		return fmt.Errorf("%s: %w", name, err)
	}
	return u.commit(ctx, name)
}

func (s *Store) newUnit() *unit {
	return &unit{store: s, aggs: map[Key]*loaded{}, evidence: map[stepKey]evidence{}, settled: map[replyKey]Response{}, waiting: map[saga.ID]eventText{}, ready: map[string]bool{}, paused: map[string]bool{}}
}

// expect notes the aggregates that are going to be loaded and returns their locks in order.
func (u *unit) expect(needs []need) []int64 {
	u.needs = make(map[Key][]need, len(needs))
	keys := make([]Key, len(needs))
	for i, n := range needs {
		keys[i] = n.key
		u.needs[n.key] = append(u.needs[n.key], n)
	}
	sorted, hashes := lockOrder(keys)
	u.keys = sorted
	for _, k := range sorted {
		u.aggs[k] = &loaded{agg: &saga.Aggregate{Type: k.Type, Key: k.ID}, sagas: map[saga.ID]sagaImage{}}
	}
	return hashes
}

func (u *unit) rollback(ctx context.Context) { _ = u.tx.Rollback(context.WithoutCancel(ctx)) }

// commit writes what changed and ends the transaction. name is the transition's, for failpoints.
func (u *unit) commit(ctx context.Context, name string) error {
	if err := u.write(ctx, name); err != nil {
		u.rollback(ctx)
		return fmt.Errorf("%s: %w", name, err)
	}
	u.store.hub.ready(u.ready)
	// Not an error of the transaction: it is committed, whatever the failpoint says.
	if err := u.failpoint(name, ".after-commit"); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// in notes whose transition is in the transaction.
func (u *unit) in(scope string) {
	if !slices.Contains(u.scopes, scope) {
		u.scopes = append(u.scopes, scope)
	}
}

// claimedFor notes that the transaction claims for a destination beside what else it does.
func (u *unit) claimedFor(dest string) {
	if !slices.Contains(u.claims, dest) {
		u.claims = append(u.claims, dest)
	}
}

// failpoint hits the transition's place, and that of every scope in it; claims have theirs in whatever transaction they are made.
func (u *unit) failpoint(name, place string) error {
	if !failpoint.Active() {
		return nil
	}
	err := hitAll("journal."+name+place, u.scopes)
	if len(u.claims) > 0 {
		err = errors.Join(err, hitAll("journal.claim"+place, u.claims))
	}
	return err
}

func hitAll(name string, scopes []string) error {
	err := failpoint.Hit(name)
	for _, scope := range scopes {
		err = errors.Join(err, failpoint.Hit(name+"."+scope))
	}
	return err
}

// write sends all rows and the COMMIT in one round trip.
func (u *unit) write(ctx context.Context, name string) error {
	if err := u.collect(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	u.rows.queue(b)
	if err := u.failpoint(name, ".before-commit"); err != nil {
		return err
	}
	b.Queue("COMMIT")
	return u.tx.SendBatch(ctx, b).Close()
}

// collect turns changes and emissions into rows.
func (u *unit) collect(ctx context.Context) error {
	var events []outbox.Event
	for _, k := range u.keys {
		l := u.aggs[k]
		u.diff(k, l)
		if c := u.tombs[k]; c != nil {
			u.rows.tombstone(c)
		}
		for _, e := range l.agg.TakeEmissions() {
			event, err := u.event(ctx, k, e)
			if err != nil {
				return err
			}
			events = append(events, event)
		}
	}
	return u.rows.publish(events)
}

// diff notes every saga and step that is new or changed.
func (u *unit) diff(k Key, l *loaded) {
	for _, s := range l.agg.Sagas {
		was, known := l.sagas[s.ID]
		switch {
		case !known:
			u.rows.newSaga(k, s)
		case !sameHead(&was.head, s) || was.lateOpen != s.LateOpen():
			u.rows.changedSaga(s)
		}
		for i, t := range s.Steps {
			switch {
			case i >= len(was.steps):
				u.rows.newStep(s.ID, i, t)
			case was.steps[i] != *t:
				u.rows.changedStep(s.ID, t)
			default:
				continue
			}
			if t.State == saga.Ready || t.State == saga.Resolving {
				u.ready[t.Dest] = true
			}
		}
	}
}

// sameHead compares what transitions change of a saga.
func sameHead(x, y *saga.Saga) bool {
	return x.State == y.State && x.Revision == y.Revision && x.Attention == y.Attention && x.Reason == y.Reason &&
		x.CancelVersion == y.CancelVersion && x.FailingSince == y.FailingSince
}
