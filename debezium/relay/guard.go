package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// connect opens a connection that speaks SQL, by the simple protocol, and the replication commands.
func connect(ctx context.Context, dsn string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("connection string: %w", err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	cfg.RuntimeParams["replication"] = "database"
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	cfg.RuntimeParams["application_name"] = "ebb-relay"
	// The server is to end a stream that the relay has lost, not a statement timeout of the role.
	cfg.RuntimeParams["statement_timeout"] = "0"
	cfg.BuildFrontend = buildFrontend
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return conn, nil
}

// slotState is what the server says about the slot.
type slotState struct {
	plugin, database string
	status, reason   string
	holder           int // process id of the session that streams from it, 0 if none
	confirmed        pglogrepl.LSN
}

func identify(ctx context.Context, conn *pgx.Conn) (System, error) {
	id, err := pglogrepl.IdentifySystem(ctx, conn.PgConn())
	if err != nil {
		return System{}, fmt.Errorf("identify the server: %w", err)
	}
	return System{ID: id.SystemID, Timeline: id.Timeline, Database: id.DBName}, nil
}

func readSlot(ctx context.Context, conn *pgx.Conn, name string) (slotState, error) {
	var s slotState
	var confirmed string
	// invalidation_reason exists from PostgreSQL 17 on; as JSON a missing column is null.
	err := conn.QueryRow(ctx, `
		SELECT coalesce(plugin, ''), coalesce(database, ''), coalesce(wal_status, ''),
			coalesce(to_jsonb(s) ->> 'invalidation_reason', ''), coalesce(active_pid, 0),
			coalesce(confirmed_flush_lsn::text, '0/0')
		FROM pg_replication_slots s WHERE slot_name = $1`, name).
		Scan(&s.plugin, &s.database, &s.status, &s.reason, &s.holder, &confirmed)
	if errors.Is(err, pgx.ErrNoRows) {
		return slotState{}, &SlotMissingError{Slot: name}
	}
	if err != nil {
		return slotState{}, fmt.Errorf("read slot %q: %w", name, err)
	}
	if s.confirmed, err = pglogrepl.ParseLSN(confirmed); err != nil {
		return slotState{}, fmt.Errorf("read slot %q: %w", name, err)
	}
	return s, nil
}

// usable says whether the slot can be streamed from at all.
func (s slotState) usable(name, database string) error {
	switch {
	case s.plugin != "pgoutput" || s.database != database:
		return &SlotForeignError{Slot: name, Plugin: s.plugin, Database: s.database}
	case s.status == "lost" || s.reason != "":
		return &SlotLostError{Slot: name, Status: s.status, Reason: s.reason}
	}
	return nil
}

// judge compares the server and its slot with what Kafka is known to hold. known lists all slots of the state topic.
func judge(system System, slot slotState, name, topic string, stored *Position, known []string) error {
	if stored == nil {
		if len(known) > 0 {
			return &UnknownSlotError{Slot: name, Topic: topic, Known: known}
		}
		return nil // the first start: the slot is the only truth there is
	}
	if stored.System != system {
		return &SystemChangedError{Slot: name, Was: stored.System, Is: system}
	}
	// The position is written before the slot is confirmed, so the slot can be behind but never ahead.
	if slot.confirmed > stored.LSN {
		return &SlotAheadError{Slot: name, Confirmed: slot.confirmed, Acked: stored.LSN}
	}
	return nil
}

func checkPublication(ctx context.Context, conn *pgx.Conn, publication, slot string) error {
	var exists bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1)", publication).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look for publication %q: %w", publication, err)
	}
	if !exists {
		return &PublicationError{Publication: publication, Slot: slot}
	}
	return nil
}

// userTypes reads how values of user-defined types are sent: a domain as its base, an enum as text.
func userTypes(ctx context.Context, conn *pgx.Conn) (map[uint32]uint32, error) {
	rows, err := conn.Query(ctx, `
		WITH RECURSIVE base AS (
			SELECT oid, oid AS resolved, typtype, typbasetype FROM pg_type WHERE oid >= $1 AND typtype IN ('d', 'e')
			UNION ALL
			SELECT b.oid, t.oid, t.typtype, t.typbasetype FROM base b JOIN pg_type t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
		)
		SELECT oid, CASE WHEN typtype = 'e' THEN $2 ELSE resolved END FROM base WHERE typtype <> 'd'`,
		uint32(firstUserOID), uint32(pgtype.TextOID))
	if err != nil {
		return nil, fmt.Errorf("read the user-defined types: %w", err)
	}
	types := map[uint32]uint32{}
	var oid, resolved uint32
	_, err = pgx.ForEachRow(rows, []any{&oid, &resolved}, func() error {
		types[oid] = resolved
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the user-defined types: %w", err)
	}
	return types, nil
}
