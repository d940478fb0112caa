package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Errors of Pause and Resume.
var (
	ErrPaused    = errors.New("destination is paused already")
	ErrNotPaused = errors.New("destination is not paused")
)

// Pause says who stopped the claims of a destination, when and why.
type Pause struct {
	Name   string
	Who    string
	Reason string
	Since  time.Time
}

// Pause stops the claims of a destination in every process: nothing new is sent to it, no undo and no lookup either. Calls that are
// out end as they do; records are read. Errors: ErrUnknownVersion, ErrPaused, ErrNoReason.
func (s *Store) Pause(ctx context.Context, name string, by Action) error {
	if _, err := s.VersionOf(ctx, name, 1); err != nil {
		return fmt.Errorf("pause %s: %w", name, err)
	}
	return s.setPaused(ctx, "pause", name, by, ErrPaused,
		`INSERT INTO ebb.paused_destinations (name, who, reason) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, name, clean(by.Who), clean(by.Reason))
}

// Resume lets a paused destination go on. Errors: ErrNotPaused, ErrNoReason.
func (s *Store) Resume(ctx context.Context, name string, by Action) error {
	err := s.setPaused(ctx, "resume", name, by, ErrNotPaused, `DELETE FROM ebb.paused_destinations WHERE name = $1`, name)
	if err != nil {
		return err
	}
	s.hub.ready(map[string]bool{name: true})
	if err := s.hub.notify(ctx, s.pool); err != nil {
		s.log.DebugContext(ctx, "NOTIFY failed; others will look by themselves", "error", err)
	}
	return nil
}

// setPaused runs the statement, which changes one row unless there is nothing to do, and notes who wanted it.
func (s *Store) setPaused(ctx context.Context, action, name string, by Action, none error, sql string, args ...any) error {
	if by.Who == "" || by.Reason == "" {
		return fmt.Errorf("%s %s: %w", action, name, ErrNoReason)
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() == 0 {
			err = none
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO ebb.operator_actions (who, action, target, reason) VALUES ($1, $2, $3, $4)`,
			clean(by.Who), action+" destination", name, clean(by.Reason))
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, name, err)
	}
	return nil
}

// Paused lists the destinations that are paused, by name.
func (s *Store) Paused(ctx context.Context) (map[string]Pause, error) {
	rows, err := s.pool.Query(ctx, `SELECT name, who, reason, paused_at FROM ebb.paused_destinations`)
	if err != nil {
		return nil, fmt.Errorf("paused destinations: %w", err)
	}
	out := map[string]Pause{}
	var p Pause
	_, err = pgx.ForEachRow(rows, []any{&p.Name, &p.Who, &p.Reason, &p.Since}, func() error {
		p.Since = p.Since.UTC()
		out[p.Name] = p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("paused destinations: %w", err)
	}
	return out, nil
}

// OnTrial tells whether nothing speaks for a version of a destination: none of its do steps has succeeded, and nobody has resumed the
// destination since the version was applied.
func (s *Store) OnTrial(ctx context.Context, name string, version int) (on bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT NOT EXISTS (
	SELECT FROM ebb.steps WHERE destination = $1 AND direction = 'do' AND spec_version = $2 AND state = 'SUCCEEDED'
) AND NOT EXISTS (
	SELECT FROM ebb.operator_actions a JOIN ebb.destinations d ON d.name = a.target AND d.version = $2
	WHERE a.action = 'resume destination' AND a.target = $1 AND a.at > d.applied_at
)`, name, version).Scan(&on)
	if err != nil {
		return false, fmt.Errorf("trial of %s version %d: %w", name, version, err)
	}
	return on, nil
}
