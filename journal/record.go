package journal

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/ebbline/ebb/journal/saga"
)

// Recording is how one attempt ended.
type Recording struct {
	Claimed
	Worker   string
	SpecHash string
	Result   saga.Result
	Exchange Exchange
	// Undo is the rendered undo request of a success (G6), nil for none; Result.Revert says which.
	Undo []byte
}

// Exchange is the audit of one attempt.
type Exchange struct {
	Sent   bool
	Status int
	// Header is the reply's, without credentials, in the destination's own encoding.
	Header []byte
	Body   []byte
	Err    string
	// Started carries a monotonic reading; it is turned into the database's time when it is stored.
	Started  time.Time
	Duration time.Duration
}

// Record stores how attempts ended, in one transaction: end states, receipts, undo requests, what follows from them, and the
// events that say so. The result has an error per member: nil, saga.ErrFenced for a result that came too late to count (its
// exchange is kept), or why its aggregate could not be changed. The steps of the members must differ.
func (s *Store) Record(ctx context.Context, members []Recording) ([]error, error) {
	return each(ctx, s, "record", members, recordedClaim, (*unit).record, nil)
}

func recordedClaim(m *Recording) *Claimed { return &m.Claimed }

// each runs one transition per member in one transaction, and gives an error per member; after, if there is any, follows in the same
// transaction.
func each[T any](
	ctx context.Context, s *Store, name string, members []T, of func(*T) *Claimed, move func(*unit, *T) error, after func(*unit),
) ([]error, error) {
	needs := make([]need, len(members))
	for i := range members {
		c := of(&members[i])
		needs[i] = about(c.Aggregate, c.Saga)
	}
	errs := make([]error, len(members))
	err := s.transact(ctx, name, needs, func(u *unit) error {
		for i := range members {
			c := of(&members[i])
			u.in(c.Dest)
			if errs[i] = u.aggs[c.Aggregate].err; errs[i] == nil {
				errs[i] = move(u, &members[i])
			}
		}
		if after != nil {
			after(u)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

func (u *unit) record(m *Recording) error {
	l := u.aggs[m.Aggregate]
	u.evidence[stepKey{m.Saga, m.Dest, m.Dir}] = evidence{m.SpecHash, m.Exchange.Status, m.Content, m.Exchange.Body, m.Undo}
	t := step(l.agg, m.Saga, m.Dest, m.Dir)
	was := saga.StepState(0)
	if t != nil {
		was = t.State
	}
	err := l.agg.Record(u.env, m.Saga, m.Dest, m.Dir, m.Epoch, m.Result)
	if t == nil {
		return err
	}
	settled := was != saga.Succeeded && t.State == saga.Succeeded
	u.rows.call(u.env, m, settled, err != nil)
	if settled && m.Dir == saga.Do {
		u.settled[replyKey{m.Saga, m.Dest}] = Response{m.Exchange.Status, m.Exchange.Body}
	}
	if settled && m.Dir == saga.Do && m.Result.Revert == saga.RevertPinned {
		u.rows.request(m.Saga, &saga.Step{Dest: m.Dest, Dir: saga.Undo, SpecVersion: t.SpecVersion}, m.Route, m.Undo)
	}
	return err
}

func step(a *saga.Aggregate, id saga.ID, dest string, dir saga.Direction) *saga.Step {
	if s := a.Find(id); s != nil {
		return s.Step(dest, dir)
	}
	return nil
}

func (r *rows) call(env saga.Env, m *Recording, settled, fenced bool) {
	x := m.Exchange
	started := env.Now
	if !x.Started.IsZero() {
		started = env.Now.Add(-time.Since(x.Started))
	}
	r.calls.add(id(m.Saga), val(m.Dest), val(m.Dir.String()), val(m.Epoch), val(int32(m.Attempt)), text(m.Worker), val(x.Sent),
		val(settled), val(fenced), val(m.Result.Class.String()), val(int32(x.Status)), val(x.Header), val(x.Body), text(x.Err),
		val(timestamp(started)), val(x.Duration.Microseconds()))
}

// Minimal is the recording without anything that a database could refuse: no bodies, no free text, no undo request. A success
// has happened, so it must be known; its saga parks if it has to be unwound.
func (m Recording) Minimal() Recording {
	note := fmt.Sprintf("stored without its reply: status %d, %d bytes, sha256 %x", m.Exchange.Status, len(m.Exchange.Body), sha256.Sum256(m.Exchange.Body))
	m.Exchange.Body, m.Exchange.Header, m.Exchange.Err = nil, nil, note
	m.Result.Reason = ""
	m.Undo = nil
	if m.Result.Revert == saga.RevertPinned {
		m.Result.Revert = saga.RevertBroken
	}
	return m
}

// Return is a claim that is given back on shutdown.
type Return struct {
	Claimed
	Worker string
	// Sent says that a byte may have left: then the attempt may have happened.
	Sent bool
}

// Release gives claims back without charge (G10), in one transaction. The steps of the members must differ.
func (s *Store) Release(ctx context.Context, members []Return) ([]error, error) {
	return each(ctx, s, "release", members, func(m *Return) *Claimed { return &m.Claimed }, (*unit).giveBack, nil)
}

func (u *unit) giveBack(m *Return) error {
	err := u.aggs[m.Aggregate].agg.Release(u.env, m.Saga, m.Dest, m.Dir, m.Epoch, m.Sent)
	if err == nil && m.Sent {
		u.lost(m.Claimed, m.Worker, "interrupted by shutdown")
	}
	return err
}

// lost keeps the exchange of an attempt that ended without an answer.
func (u *unit) lost(c Claimed, worker, why string) {
	u.rows.call(u.env, &Recording{
		Claimed: c, Worker: worker, Result: saga.Result{Class: saga.ClassUnknown}, Exchange: Exchange{Sent: true, Err: why},
	}, false, false)
}
