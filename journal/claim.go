package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ebbline/ebb/internal/failpoint"
	"github.com/ebbline/ebb/journal/saga"
)

// ClaimRequest asks for work of one destination.
type ClaimRequest struct {
	Destination string
	// Worker names the process that will hold the leases.
	Worker string
	// Limit bounds the number of claims.
	Limit int
	// Lease is how long a claim is held: the longest a call can take, and a margin.
	Lease time.Duration
	// Prepare renders the request of a step's first attempt. It must be quick and ask nobody: the aggregate is locked.
	Prepare func(ctx context.Context, c Candidate) Prepared
}

// Candidate is a do step that has no request yet.
type Candidate struct {
	Saga        saga.ID
	Aggregate   Key
	Dest        string
	SpecVersion int
	EventType   string
	EventBody   []byte
	EventTime   time.Time
	TraceParent string
	// Responses are those of the saga's settled do steps, by destination.
	Responses map[string]Response
}

// Response is what a destination answered.
type Response struct {
	Status int
	Body   []byte
}

// Prepared is a rendered request, or why there is none.
type Prepared struct {
	// Content is the request, opaque to the journal; it is stored before anything is sent, and every attempt gets these bytes.
	Content []byte
	// Route says which of the specification's routes was taken.
	Route int
	// Class says why there is no request: ClassSkipped, ClassRefused or ClassParked. Zero if there is one.
	Class saga.Class
	// Reason goes with Class.
	Reason string
}

// Claimed is one attempt that may be made now.
type Claimed struct {
	Saga      saga.ID
	Aggregate Key
	Dest      string
	Dir       saga.Direction
	Epoch     int64
	Attempt   int
	Maybe     bool
	// Asking says that the step is to be looked up at its destination: its request must not be sent.
	Asking      bool
	SpecVersion int
	Route       int
	Content     []byte
	EventType   string
	EventBody   []byte
	EventTime   time.Time
	TraceParent string
}

// ClaimBatch is what a Claim brought.
type ClaimBatch struct {
	Claimed []Claimed
	// Busy counts due steps that were left because somebody else held their aggregate: look again at once.
	Busy int
	// Settled counts steps that needed no call.
	Settled int
	// More says that as many steps were due as were asked for, so that there may be more.
	More bool
	// Next is how long to wait for the earliest step that is not due yet; negative for none.
	Next time.Duration
}

const (
	candidatesSQL = `WITH due AS MATERIALIZED (
	SELECT saga_id, direction, next_attempt_at FROM ebb.steps
	WHERE destination = $1 AND state IN ('READY', 'RESOLVING') AND next_attempt_at <= statement_timestamp()
		AND NOT EXISTS (SELECT FROM ebb.paused_destinations WHERE name = $1)
	ORDER BY next_attempt_at LIMIT $2
), named AS MATERIALIZED (
	SELECT d.saga_id, d.direction, s.aggregate_type, s.aggregate_id, s.lock_key, d.next_attempt_at
	FROM due d JOIN ebb.sagas s ON s.id = d.saga_id ORDER BY d.next_attempt_at
)
SELECT saga_id, direction, aggregate_type, aggregate_id, pg_try_advisory_xact_lock(lock_key) FROM named`

	nextDueSQL = `SELECT next_attempt_at, statement_timestamp() FROM ebb.steps
WHERE destination = $1 AND state IN ('READY', 'RESOLVING') AND next_attempt_at > statement_timestamp()
ORDER BY next_attempt_at LIMIT 1`

	materialEventsSQL = `SELECT id, body, created_at, traceparent FROM ebb.events WHERE id = ANY ($1::uuid[])`

	materialRequestsSQL = `SELECT r.saga_id, r.direction, r.route, r.content FROM ebb.requests r
WHERE r.saga_id = ANY ($1::uuid[]) AND r.destination = $2`

	materialResponsesSQL = `SELECT saga_id, destination, status, reply_body FROM ebb.calls
WHERE saga_id = ANY ($1::uuid[]) AND direction = 'do' AND settled`
)

// candidate is a due step whose aggregate this transaction has locked.
type candidate struct {
	saga saga.ID
	dir  saga.Direction
	key  Key
}

// material is what rendering and sending need of one saga.
type material struct {
	body        []byte
	at          time.Time
	traceparent string
	responses   map[string]Response
	requests    map[saga.Direction]request
}

type request struct {
	route   int
	content []byte
}

// Claim takes due steps of a destination whose aggregates nobody holds, and makes them CALLING. Steps whose first request renders
// to no call are settled or parked at once.
func (s *Store) Claim(ctx context.Context, req ClaimRequest) (ClaimBatch, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return ClaimBatch{}, fmt.Errorf("claim: %w", err)
	}
	defer conn.Release()
	u := s.newUnit()
	u.in(req.Destination)
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	out := ClaimBatch{Next: -1}
	var found []candidate
	queueCandidates(b, req, &found, &out)
	results := conn.SendBatch(ctx, b)
	u.tx = results.Tx()
	if err := results.Close(); err != nil {
		u.rollback(ctx)
		return ClaimBatch{}, fmt.Errorf("claim: candidates: %w", err)
	}
	out.More = len(found)+out.Busy >= req.Limit
	if len(found) == 0 {
		u.rollback(ctx)
		return out, nil
	}
	materials, err := u.loadForClaim(ctx, req.Destination, found)
	if err != nil {
		u.rollback(ctx)
		return ClaimBatch{}, fmt.Errorf("claim: load: %w", err)
	}
	for _, c := range found {
		u.claim(ctx, req, c, materials[c.saga], &out)
	}
	if err := u.commit(ctx, "claim"); err != nil {
		return ClaimBatch{}, err
	}
	return out, nil
}

func queueCandidates(b *pgx.Batch, req ClaimRequest, found *[]candidate, out *ClaimBatch) {
	b.Queue(candidatesSQL, req.Destination, req.Limit).Query(func(rows pgx.Rows) error {
		var c candidate
		var dir string
		var locked bool
		_, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&c.saga), &dir, &c.key.Type, &c.key.ID, &locked}, func() (err error) {
			if !locked {
				out.Busy++
				return nil
			}
			c.dir, err = saga.ParseDirection(dir)
			*found = append(*found, c)
			return err
		})
		return err
	})
	b.Queue(nextDueSQL, req.Destination).QueryRow(func(row pgx.Row) error {
		var at, now time.Time
		switch err := row.Scan(&at, &now); {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		out.Next = at.Sub(now)
		return nil
	})
}

// loadForClaim loads the locked aggregates and what their candidates' requests are made of.
func (u *unit) loadForClaim(ctx context.Context, dest string, found []candidate) (map[saga.ID]*material, error) {
	needs := make([]need, len(found))
	materials := map[saga.ID]*material{}
	var ids []pgtype.UUID
	for i, c := range found {
		needs[i] = about(c.key, c.saga)
		if materials[c.saga] == nil {
			materials[c.saga] = &material{responses: map[string]Response{}, requests: map[saga.Direction]request{}}
			ids = append(ids, pgtype.UUID{Bytes: c.saga, Valid: true})
		}
	}
	u.expect(needs)
	b := &pgx.Batch{}
	l := u.queueLoad(b)
	queueMaterials(b, dest, ids, materials)
	if err := u.tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	return materials, u.finish(ctx, l)
}

func queueMaterials(b *pgx.Batch, dest string, ids []pgtype.UUID, materials map[saga.ID]*material) {
	b.Queue(materialEventsSQL, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var sagaID saga.ID
			var m material
			if err := rows.Scan((*[16]byte)(&sagaID), &m.body, &m.at, &m.traceparent); err != nil {
				return err
			}
			at := materials[sagaID]
			at.body, at.at, at.traceparent = m.body, m.at.UTC(), m.traceparent
		}
		return rows.Err()
	})
	b.Queue(materialRequestsSQL, ids, dest).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var sagaID saga.ID
			var dir string
			var r request
			if err := rows.Scan((*[16]byte)(&sagaID), &dir, &r.route, &r.content); err != nil {
				return err
			}
			d, err := saga.ParseDirection(dir)
			if err != nil {
				return err
			}
			materials[sagaID].requests[d] = r
		}
		return rows.Err()
	})
	b.Queue(materialResponsesSQL, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var sagaID saga.ID
			var from string
			var r Response
			if err := rows.Scan((*[16]byte)(&sagaID), &from, &r.Status, &r.Body); err != nil {
				return err
			}
			materials[sagaID].responses[from] = r
		}
		return rows.Err()
	})
}

// claim makes one candidate CALLING, if it still may be, and renders its request if it has none.
func (u *unit) claim(ctx context.Context, req ClaimRequest, c candidate, m *material, out *ClaimBatch) {
	if u.paused[req.Destination] {
		return
	}
	l := u.aggs[c.key]
	if l.err != nil {
		u.store.log.ErrorContext(ctx, "step cannot be claimed", "saga", c.saga.String(), "destination", req.Destination, "error", l.err)
		return
	}
	lease := u.env.Now.Add(req.Lease)
	epoch, err := l.agg.Claim(u.env, c.saga, req.Destination, c.dir, req.Worker, lease)
	if err != nil {
		return // it was taken, or its turn has not come: the step says so itself
	}
	s := l.agg.Find(c.saga)
	t := s.Step(req.Destination, c.dir)
	stored, ok := m.requests[c.dir]
	if !ok {
		p := u.prepare(ctx, req, c, s, t, m)
		if p.Class != 0 {
			out.Settled++
			_ = l.agg.Record(u.env, c.saga, req.Destination, c.dir, epoch, saga.Result{Class: p.Class, Reason: p.Reason})
			return
		}
		stored = request{p.Route, p.Content}
		u.rows.request(c.saga, t, p.Route, p.Content)
	}
	out.Claimed = append(out.Claimed, Claimed{
		Saga: c.saga, Aggregate: c.key, Dest: req.Destination, Dir: c.dir, Epoch: epoch, Attempt: t.Attempt, Maybe: t.Maybe, Asking: t.Asking,
		SpecVersion: t.SpecVersion, Route: stored.route, Content: stored.content,
		EventType: s.EventType, EventBody: m.body, EventTime: m.at, TraceParent: m.traceparent,
	})
}

// prepare renders the request of a first attempt. An undo step always has one (G6).
func (u *unit) prepare(ctx context.Context, req ClaimRequest, c candidate, s *saga.Saga, t *saga.Step, m *material) Prepared {
	if c.dir == saga.Undo {
		return Prepared{Class: saga.ClassParked, Reason: "its undo request is not in ebb.requests"}
	}
	if err := failpoint.Hit("journal.claim.prepare"); err != nil {
		return Prepared{Class: saga.ClassParked, Reason: err.Error()}
	}
	p := req.Prepare(ctx, Candidate{
		Saga: c.saga, Aggregate: c.key, Dest: t.Dest, SpecVersion: t.SpecVersion,
		EventType: s.EventType, EventBody: m.body, EventTime: m.at, TraceParent: m.traceparent, Responses: m.responses,
	})
	if p.Class == 0 && p.Content == nil {
		return Prepared{Class: saga.ClassParked, Reason: "the destination rendered no request"}
	}
	return p
}

func (r *rows) request(sagaID saga.ID, t *saga.Step, route int, content []byte) {
	r.requests.add(id(sagaID), val(t.Dest), val(t.Dir.String()), val(int32(t.SpecVersion)), val(int32(route)), val(content))
}
