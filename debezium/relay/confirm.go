package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/ebbline/ebb/internal/failpoint"
)

// confirm stores progress in Kafka and then tells PostgreSQL, every StatusInterval, when the server asks for a reply and
// when Kafka has a position. It never waits for Kafka: a server that hears nothing for wal_sender_timeout ends the
// stream, also while Kafka is down.
func (s *stream) confirm(ctx context.Context) error {
	cfg := s.engine.relay.cfg
	tick := time.NewTicker(cfg.StatusInterval)
	defer tick.Stop()
	silence := silence{limit: cfg.StallAfter}
	for {
		if err := s.sendStatus(false); err != nil {
			return err
		}
		s.report()
		select {
		case <-ctx.Done():
			return s.sendStatus(false)
		case <-tick.C:
			s.engine.storeProgress()
			if err := s.listen(&silence); err != nil {
				return err
			}
		case <-s.engine.kick:
			s.engine.storeProgress()
		}
	}
}

// silence measures how long the server has said nothing although we were listening.
type silence struct {
	limit time.Duration
	heard uint64
	since time.Time
}

// listen asks a silent server for a sign of life after half the limit, and gives the connection up after all of it: a
// connection can be dead without an error on our side.
func (s *stream) listen(q *silence) error {
	heard := s.heard.Load()
	if heard != q.heard || q.since.IsZero() || !s.reading.Load() {
		q.heard, q.since = heard, time.Now()
		return nil
	}
	switch silent := time.Since(q.since); {
	case silent > q.limit:
		return fmt.Errorf("the server has been silent for %s", silent.Round(time.Second))
	case silent > q.limit/2:
		return s.sendStatus(true)
	}
	return nil
}

// sendStatus tells the server the position that the state topic holds: written, flushed and applied are one here.
func (s *stream) sendStatus(wantReply bool) error {
	if err := failpoint.Hit("relay.before_confirm"); err != nil {
		return err
	}
	position := pglogrepl.LSN(s.engine.stored.Load())
	pg := s.conn.PgConn()
	if err := pg.Conn().SetWriteDeadline(time.Now().Add(s.engine.relay.cfg.StallAfter)); err != nil {
		return fmt.Errorf("confirm to PostgreSQL: %w", err)
	}
	err := pglogrepl.SendStandbyStatusUpdate(context.Background(), pg, pglogrepl.StandbyStatusUpdate{
		WALWritePosition: position,
		ReplyRequested:   wantReply,
	})
	if err != nil {
		return fmt.Errorf("confirm to PostgreSQL: %w", err)
	}
	return nil
}

func (s *stream) report() {
	e := s.engine
	p := Progress{
		Received:  pglogrepl.LSN(s.received.Load()),
		Acked:     e.tracker.position(),
		Confirmed: pglogrepl.LSN(e.stored.Load()),
		ServerEnd: pglogrepl.LSN(s.serverEnd.Load()),
	}
	if p.ServerEnd > p.Confirmed {
		p.LagBytes = uint64(p.ServerEnd - p.Confirmed)
	}
	var since time.Time
	if p.Records, since = e.tracker.waiting(); !since.IsZero() {
		p.Oldest = time.Since(since)
	}
	e.relay.setProgress(p)
}

// drain finishes a shutdown: it waits, within the grace, for Kafka to take what was read, and then stores and confirms
// it. The confirming goroutine keeps the connection alive meanwhile, and sends the last status itself.
func (s *stream) drain() error {
	e := s.engine
	if err := e.events.Flush(e.life); err != nil {
		return fmt.Errorf("shutdown: Kafka has not taken what was on its way within the grace; it will be sent again: %w", err)
	}
	for e.life.Err() == nil && e.failure() == nil {
		target := e.tracker.position()
		if uint64(target) <= e.stored.Load() {
			break
		}
		if err := e.state.store(e.life, e.positionAt(target)); err != nil {
			return err
		}
		for {
			have := e.stored.Load()
			if have >= uint64(target) || e.stored.CompareAndSwap(have, uint64(target)) {
				break
			}
		}
	}
	return nil
}
