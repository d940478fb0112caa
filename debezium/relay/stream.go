package relay

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// stream is one connection's worth of streaming. The goroutine that runs it reads; another one confirms. Only the
// confirming one writes to the connection.
type stream struct {
	engine *engine
	conn   *pgx.Conn
	router *router

	tx      *transaction // open transaction, nil between them
	commit  commit       // of the open transaction
	promise promiseFunc  // for its records
	warned  map[uint32]bool

	serverEnd atomic.Uint64 // end of the server's WAL, as last heard
	heard     atomic.Uint64 // messages received
	reading   atomic.Bool   // waiting for the server, not for Kafka
	received  atomic.Uint64 // for the report
}

// slotBusyError says that another session streams from the slot. It goes away when that session ends.
type slotBusyError struct {
	slot   string
	holder int
}

func (e *slotBusyError) Error() string {
	return fmt.Sprintf("slot %q is in use by the server process %d", e.slot, e.holder)
}

var errStreamEnded = errors.New("the server ended the stream")

// stream connects, checks that it may stream, and streams until ctx or the connection ends.
func (e *engine) stream(ctx context.Context) error {
	connectCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := connect(connectCtx, e.relay.cfg.DSN)
	if err != nil {
		return err
	}
	s := &stream{engine: e, conn: conn, warned: map[uint32]bool{}}
	defer s.disconnect()
	start, err := e.admit(connectCtx, conn)
	if err != nil {
		return err
	}
	types, err := userTypes(connectCtx, conn)
	if err != nil {
		return err
	}
	s.router = newRouter(e.relay.rules, func(oid uint32) (uint32, error) {
		if base, ok := types[oid]; ok {
			return base, nil
		}
		return oid, nil // unknown to every converter, which says so with the column's name
	})
	if err := s.start(connectCtx, start); err != nil {
		return err
	}
	e.relay.cfg.Logger.InfoContext(ctx, "relay: streaming", "slot", e.relay.cfg.Slot, "from", start.String())
	e.sessions++
	return s.run(ctx)
}

// admit checks server, slot and publication against the state topic, and gives the position to stream from. What it
// refuses is listed in the package comment.
func (e *engine) admit(ctx context.Context, conn *pgx.Conn) (pglogrepl.LSN, error) {
	cfg := e.relay.cfg
	system, err := identify(ctx, conn)
	if err != nil {
		return 0, err
	}
	slot, err := readSlot(ctx, conn, cfg.Slot)
	if err != nil {
		return 0, err
	}
	if err := slot.usable(cfg.Slot, system.Database); err != nil {
		return 0, err
	}
	if err := checkPublication(ctx, conn, cfg.Publication, cfg.Slot); err != nil {
		return 0, err
	}
	if slot.holder != 0 {
		return 0, &slotBusyError{slot: cfg.Slot, holder: slot.holder}
	}
	if e.stored.Load() == 0 {
		if err := e.restore(ctx, system, slot); err != nil {
			return 0, err
		}
	} else if err := judge(system, slot, cfg.Slot, cfg.StateTopic, e.storedPosition(), nil); err != nil {
		return 0, err
	}
	// What has been read in this process is on its way to Kafka already: the server need not send it again.
	e.received = max(e.received, e.tracker.position())
	return e.received, nil
}

func (e *engine) storedPosition() *Position {
	p := e.positionAt(pglogrepl.LSN(e.stored.Load()))
	return &p
}

// restore reads the stored position at the first connection. A first start stores one before anything is streamed: from
// then on a slot that has moved without us is noticed.
func (e *engine) restore(ctx context.Context, system System, slot slotState) error {
	cfg := e.relay.cfg
	if err := e.state.ensure(ctx); err != nil {
		return err
	}
	stored, known, err := e.state.load(ctx, cfg.Slot)
	if err != nil {
		return err
	}
	if err := judge(system, slot, cfg.Slot, cfg.StateTopic, stored, known); err != nil {
		return err
	}
	e.system = system
	if stored == nil {
		first := e.positionAt(slot.confirmed)
		if err := e.state.store(ctx, first); err != nil {
			return err
		}
		stored = &first
		e.relay.cfg.Logger.InfoContext(ctx, "relay: first start of the slot", "slot", cfg.Slot, "at", slot.confirmed.String())
	}
	e.stored.Store(uint64(stored.LSN))
	e.tracker.start(stored.LSN)
	return nil
}

// start begins the replication. Binary values cost half the bytes of text for a payload, and no parsing.
func (s *stream) start(ctx context.Context, from pglogrepl.LSN) error {
	cfg := s.engine.relay.cfg
	publication := strings.ReplaceAll(pgx.Identifier{cfg.Publication}.Sanitize(), "'", "''")
	err := pglogrepl.StartReplication(ctx, s.conn.PgConn(), cfg.Slot, from, pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication,
		PluginArgs: []string{
			"proto_version '1'", "binary 'true'", "publication_names '" + publication + "'",
		},
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "55006" { // object_in_use: taken since admit has looked
		return &slotBusyError{slot: cfg.Slot}
	}
	if err != nil {
		return fmt.Errorf("start replication: %w", err)
	}
	return nil
}

// run reads until the connection or ctx ends, while another goroutine confirms. After ctx has ended, what was read is
// finished: see drain.
func (s *stream) run(ctx context.Context) error {
	interrupt := func() { _ = s.conn.PgConn().Conn().SetReadDeadline(time.Unix(1, 0)) }
	defer context.AfterFunc(ctx, interrupt)()

	confirmCtx, stopConfirming := context.WithCancel(context.WithoutCancel(ctx))
	confirmed := make(chan error, 1)
	go func() {
		err := s.confirm(confirmCtx)
		if err != nil {
			interrupt()
		}
		confirmed <- err
	}()
	go func() {
		select {
		case <-s.engine.failed:
			interrupt()
		case <-confirmCtx.Done():
		}
	}()

	err := s.read(ctx)
	if s.tx != nil {
		s.engine.tracker.abandon(s.tx)
	}
	if ctx.Err() != nil && s.engine.failure() == nil {
		err = s.drain()
	}
	stopConfirming()
	return errors.Join(err, <-confirmed)
}

// read takes messages until something ends it. Waiting is ended by a read deadline in the past and not by a context,
// which the client library would watch with a goroutine per message.
func (s *stream) read(ctx context.Context) error {
	pg := s.conn.PgConn()
	for ctx.Err() == nil && s.engine.failure() == nil {
		s.reading.Store(true)
		msg, err := pg.ReceiveMessage(context.Background())
		s.reading.Store(false)
		if err != nil {
			return fmt.Errorf("read from PostgreSQL: %w", err)
		}
		s.heard.Add(1)
		switch msg := msg.(type) {
		case *pgproto3.CopyData:
			err = s.copyData(msg.Data)
		case *pgproto3.ErrorResponse:
			err = s.serverError(msg)
		case *pgproto3.NoticeResponse:
			err = s.notice(msg)
		case *pgproto3.CopyDone:
			err = errStreamEnded
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *stream) serverError(msg *pgproto3.ErrorResponse) error {
	if msg.Code == "42704" { // undefined_object: the publication, as of the WAL being decoded
		return &PublicationError{Publication: s.engine.relay.cfg.Publication, Slot: s.engine.relay.cfg.Slot, Stale: true}
	}
	return fmt.Errorf("stream: %w", pgconn.ErrorResponseToPgError(msg))
}

// notice looks for the warning by which PostgreSQL 18 and later skip a publication that did not exist yet, where older
// releases fail: skipping rows in silence is the worse of the two.
func (s *stream) notice(msg *pgproto3.NoticeResponse) error {
	if msg.SeverityUnlocalized == "WARNING" && msg.Code == "55000" {
		return &PublicationError{Publication: s.engine.relay.cfg.Publication, Slot: s.engine.relay.cfg.Slot, Stale: true}
	}
	return nil
}

// copyData takes one message of the replication protocol.
func (s *stream) copyData(data []byte) error {
	if len(data) == 0 {
		return errors.New("the server sent an empty message")
	}
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		m, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return fmt.Errorf("keepalive: %w", err)
		}
		s.keepalive(m)
		return nil
	case pglogrepl.XLogDataByteID:
		// start, end and time of 8 bytes each, then the message of the output plugin
		if len(data) < 26 {
			return fmt.Errorf("a data message has only %d bytes", len(data))
		}
		s.serverEnd.Store(binary.BigEndian.Uint64(data[9:]))
		return s.change(data[25:])
	default:
		return fmt.Errorf("the server sent a message of unknown type %q", data[0])
	}
}

// keepalive takes the server's word that everything up to a position has been sent. Between transactions that counts as
// progress, so that a database whose other tables are busy does not hold WAL for the slot.
func (s *stream) keepalive(m pglogrepl.PrimaryKeepaliveMessage) {
	s.serverEnd.Store(uint64(m.ServerWALEnd))
	if s.tx == nil {
		s.engine.tracker.idle(m.ServerWALEnd, time.Now())
		s.received.Store(uint64(m.ServerWALEnd))
	}
	if m.ReplyRequested {
		s.engine.wake()
	}
}

// change takes one message of the output plugin.
func (s *stream) change(data []byte) error {
	if data[0] == insertMessage {
		return s.insert(data[1:])
	}
	msg, err := pglogrepl.Parse(data)
	if err != nil {
		return fmt.Errorf("message of type %q: %w", data[0], err)
	}
	e := s.engine
	switch m := msg.(type) {
	case *pglogrepl.BeginMessage:
		s.tx = e.tracker.open(time.Now())
		s.commit = commit{lsn: m.FinalLSN, at: m.CommitTime}
		s.promise = e.promise(s.tx, s.commit)
	case *pglogrepl.CommitMessage:
		if s.tx == nil {
			return errors.New("a commit came without its begin")
		}
		e.tracker.commit(s.tx, m.TransactionEndLSN)
		e.received = m.TransactionEndLSN
		s.received.Store(uint64(m.TransactionEndLSN))
		s.tx, s.promise = nil, nil
	case *pglogrepl.RelationMessage:
		return s.router.relation(m)
	case *pglogrepl.UpdateMessage:
		s.unexpected(m.RelationID, "update")
	case *pglogrepl.DeleteMessage:
		s.unexpected(m.RelationID, "delete")
	case *pglogrepl.TruncateMessage:
		for _, id := range m.RelationIDs {
			s.unexpected(id, "truncate")
		}
	}
	return nil
}

func (s *stream) insert(data []byte) error {
	if s.tx == nil {
		return errors.New("a row came outside a transaction")
	}
	record, err := s.router.record(data)
	var poison *PoisonError
	if errors.As(err, &poison) {
		poison.LSN = s.commit.lsn
	}
	if err != nil || record == nil {
		return err
	}
	return s.engine.publish(record, s.tx, s.promise)
}

// unexpected notes, once per table and stream, a change that an insert-only publication would not have sent. Like the
// EventRouter by default, it is logged and dropped.
func (s *stream) unexpected(relation uint32, what string) {
	if p := s.router.plans[relation]; p != nil && !s.warned[relation] {
		s.warned[relation] = true
		s.engine.relay.cfg.Logger.Warn("relay: an outbox row was changed, which publishes nothing; make the publication insert-only",
			"table", p.table, "change", what)
	}
}

// disconnect ends the connection and waits for the server to have done so, too: by then it has let go of the slot, which
// the next reader would else find in use.
func (s *stream) disconnect() {
	pg := s.conn.PgConn()
	deadline := time.Now().Add(5 * time.Second)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if !pg.IsClosed() {
		_ = pg.Conn().SetDeadline(deadline)
		pg.Frontend().Send(&pgproto3.Terminate{})
		err := pg.Frontend().Flush()
		for err == nil {
			_, err = pg.ReceiveMessage(context.Background())
		}
	}
	_ = s.conn.Close(ctx)
	// A connection that broke is closed by a goroutine of the client library.
	select {
	case <-pg.CleanupDone():
	case <-ctx.Done():
	}
}

// buildFrontend reads ahead: rows are small and many.
func buildFrontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(bufio.NewReaderSize(r, 128<<10), w)
}
