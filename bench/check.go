package main

import (
	"context"
	"fmt"
)

// mismatchError is a contender's books that do not agree with what the API has seen.
type mismatchError struct{ what string }

func (e *mismatchError) Error() string { return "the books do not agree: " + e.what }

func mismatch(format string, args ...any) error { return &mismatchError{fmt.Sprintf(format, args...)} }

// checkEbb compares the journal with what the API has seen, after everything has ended.
func (b *bench) checkEbb(ctx context.Context, e *ebb, begun int64) error {
	seen, err := b.api.stats(ctx)
	if err != nil {
		return err
	}
	var sagas, completed, compensated, attention, sent, undone int64
	err = e.db.pool.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE state = 'COMPLETED'), count(*) FILTER (WHERE state = 'COMPENSATED'),
	count(*) FILTER (WHERE attention <> '') FROM ebb.sagas`).Scan(&sagas, &completed, &compensated, &attention)
	if err == nil {
		err = e.db.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE sent), count(*) FILTER (WHERE settled AND direction = 'undo') FROM ebb.calls`).
			Scan(&sent, &undone)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the journal: %w", err)
	case sagas != begun || completed+compensated != sagas || attention > 0:
		return mismatch("%d begun, %d sagas, %d completed, %d compensated, %d that wait for an operator", begun, sagas, completed, compensated, attention)
	case sent != seen.Calls:
		return mismatch("%d rows in ebb.calls, %d calls at the API", sent, seen.Calls)
	case undone != seen.Undone || seen.Refused != compensated || seen.Keyless > 0:
		return mismatch("%d undone in the journal and %d at the API, %d compensated and %d refused, %d calls without a key",
			undone, seen.Undone, compensated, seen.Refused, seen.Keyless)
	case seen.Repeats > 0:
		b.log.Warn("calls were repeated under their keys", "calls", seen.Repeats)
	}
	return nil
}

// checkPlain compares the plain loop's tables with what the API has seen.
func (b *bench) checkPlain(ctx context.Context, db *database, w *window) error {
	seen, err := b.api.stats(ctx)
	if err != nil {
		return err
	}
	var open, rejected, calls, undone int64
	err = db.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM bench.orders WHERE status = 'PENDING'), (SELECT count(*) FROM bench.orders WHERE status = 'REJECTED'),
	(SELECT count(*) FROM bench.calls), (SELECT count(*) FROM bench.steps WHERE direction = 'undo' AND state = 'SUCCEEDED')`).
		Scan(&open, &rejected, &calls, &undone)
	w.Refused = int(rejected)
	switch {
	case err != nil:
		return fmt.Errorf("read the plain loop's tables: %w", err)
	case open > 0 || calls != seen.Calls || rejected != seen.Refused || undone != seen.Undone || seen.Repeats > 0:
		return mismatch("%d orders open; %d audit rows and %d calls, %d rejected and %d refused, %d undone and %d at the API, %d repeats",
			open, calls, seen.Calls, rejected, seen.Refused, undone, seen.Undone, seen.Repeats)
	}
	return nil
}

// checkRecords compares the consumer's results with what the API has seen; the end cuts off at most one call per partition.
func (b *bench) checkRecords(ctx context.Context, db *database, partitions int) error {
	seen, err := b.api.stats(ctx)
	if err != nil {
		return err
	}
	var results int64
	if err := db.pool.QueryRow(ctx, `SELECT count(*) FROM bench.results`).Scan(&results); err != nil {
		return fmt.Errorf("read the consumer's results: %w", err)
	}
	if results > seen.Effects || results < seen.Effects-int64(partitions) {
		return mismatch("%d results, %d effects at the API", results, seen.Effects)
	}
	return nil
}
