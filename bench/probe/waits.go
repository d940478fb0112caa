package probe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Waits counts samples of what the sessions of a database were doing.
type Waits struct {
	Samples int `json:"samples"`
	// Events counts, over all samples, busy sessions by wait event; "CPU" is a session that ran or was about to. "client, in
	// transaction" is a session that held its locks while its client was busy.
	Events map[string]int `json:"events"`
	// Statements counts busy sessions by statement and wait event.
	Statements map[string]int `json:"statements"`
}

// Count is an entry of a ranking; Mean is the number of sessions at a moment.
type Count struct {
	Name string
	Mean float64
}

// Top ranks counts, the largest first, at most n.
func (w Waits) Top(counts map[string]int, n int) []Count {
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), strings.Compare(x, y))
	})
	var out []Count
	for _, name := range names[:min(n, len(names))] {
		out = append(out, Count{name, float64(counts[name]) / float64(max(w.Samples, 1))})
	}
	return out
}

const waitsSQL = `SELECT backend_type, state, coalesce(wait_event_type, ''), coalesce(wait_event, ''), left(query, 400)
FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND (datname = $1 OR backend_type NOT IN ('client backend', 'walsender'))
	AND (state IS DISTINCT FROM 'idle')`

// SampleWaits looks 100 times a second, on a connection of its own, until ctx ends.
func SampleWaits(ctx context.Context, dsn, database string) (Waits, error) {
	out := Waits{Events: map[string]int{}, Statements: map[string]int{}}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return out, fmt.Errorf("sample wait events: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return out, nil
		case <-tick.C:
		}
		if err := out.sample(ctx, conn, database); err != nil && ctx.Err() == nil {
			return out, fmt.Errorf("sample wait events: %w", err)
		}
	}
}

func (w *Waits) sample(ctx context.Context, conn *pgx.Conn, database string) error {
	rows, err := conn.Query(ctx, waitsSQL, database)
	if err != nil {
		return err
	}
	var backend, kind, event, query string
	var state *string
	_, err = pgx.ForEachRow(rows, []any{&backend, &state, &kind, &event, &query}, func() error {
		name, counted := busy(backend, state, kind, event)
		if counted {
			w.Events[name]++
			if backend == "client backend" {
				w.Statements[fingerprint(query)+" | "+name]++
			}
		}
		return nil
	})
	if err == nil {
		w.Samples++
	}
	return err
}

// busy names what a session does; processes that wait for work are left out.
func busy(backend string, state *string, kind, event string) (string, bool) {
	where := ""
	if backend != "client backend" {
		where = backend + ": "
	}
	switch {
	case state != nil && strings.HasPrefix(*state, "idle in transaction"):
		return "client, in transaction", true
	case kind == "Activity", backend == "walsender" && kind == "Client":
		return "", false
	case kind == "":
		return where + "CPU", state != nil || backend == "walsender"
	default:
		return where + kind + "/" + event, true
	}
}

// fingerprint is the beginning of a statement, without the differences of its spacing.
func fingerprint(query string) string {
	text := strings.Join(strings.Fields(query), " ")
	if len(text) > 70 {
		text = text[:70] + "…"
	}
	if text == "" {
		return "(none)"
	}
	return text
}
