package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ebbline/ebb/journal/saga"
)

// Destination is what is registered of a destination file, or of a Go program's destination.
type Destination struct {
	Name       string
	Hash       string
	Source     []byte
	EventTypes []string
	Rules      saga.Rules
}

// From says where a destination's first version begins; later versions begin at the log's end. The zero value is FromNow.
type From struct {
	earliest bool
	offsets  EndOffsets
}

// Where a new destination begins.
var (
	FromNow      = From{}               // only events that are written from now on
	FromEarliest = From{earliest: true} // every event that the topic still holds
)

// FromOffsets begins at the offsets that the function tells.
func FromOffsets(at EndOffsets) From { return From{offsets: at} }

// Change is what Apply did to one destination.
type Change struct {
	Name    string
	Action  ChangeAction
	Version int
}

// ChangeAction names a change.
type ChangeAction string

// The actions of Apply.
const (
	Added     ChangeAction = "added"
	Changed   ChangeAction = "changed"
	Removed   ChangeAction = "removed"
	Unchanged ChangeAction = "unchanged"
)

// ErrEmptyPlan is returned by Apply where no destination would take the creating events of an aggregate: their orders would stay
// PENDING for ever.
var ErrEmptyPlan = errors.New("no destination subscribes to a create event")

// EndOffsets tells an offset of every partition that destinations read: its end, or that of a moment.
type EndOffsets func(ctx context.Context) (map[TopicPartition]int64, error)

// configLock is held shared by every ingest and exclusively by Apply: a version's start offsets are read from Kafka while no
// record can be taken in, so that the plan of a record is a function of its position.
const configLock = 0x6562622d636f6e66 // "ebb-conf"

// Apply registers the destinations as the whole set of files: new and changed ones get a version, missing ones are ended, in one
// transaction. Applying the same set again changes nothing. Destinations of Go programs stay as they are. With dry, nothing is written.
// Errors: ErrEmptyPlan, ErrOtherKind, ErrCycle.
func (s *Store) Apply(ctx context.Context, set []Destination, ends EndOffsets, from From, dry bool) ([]Change, error) {
	decide := func(latest map[string]*Version) ([]Change, error) {
		if err := s.checkPlans(set, latest); err != nil {
			return nil, err
		}
		return compare(set, latest), checkKinds(set, latest, KindFile)
	}
	return s.apply(ctx, KindFile, set, ends, from, dry, decide)
}

// apply registers what decide tells, which is given the newest versions.
func (s *Store) apply(ctx context.Context, kind Kind, set []Destination, ends EndOffsets, from From, dry bool,
	decide func(latest map[string]*Version) ([]Change, error),
) ([]Change, error) {
	var changes []Change
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(configLock)); err != nil {
			return err
		}
		latest, err := latestVersions(ctx, tx)
		if err != nil {
			return err
		}
		if changes, err = decide(latest); err != nil {
			return err
		}
		if err := checkCycles(set, changes, latest); err != nil {
			return err
		}
		if dry || !slices.ContainsFunc(changes, func(c Change) bool { return c.Action != Unchanged }) {
			return nil
		}
		offsets, err := ends(ctx)
		if err != nil {
			return fmt.Errorf("read the end of the topics: %w", err)
		}
		first, err := from.first(ctx, offsets)
		if err != nil {
			return fmt.Errorf("read where a new destination begins: %w", err)
		}
		return register(ctx, tx, kind, set, changes, latest, offsets, first)
	})
	if err != nil {
		return nil, fmt.Errorf("apply destinations: %w", err)
	}
	return changes, s.refresh(ctx)
}

// first is where first versions begin; a partition that is missing begins with its first record.
func (f From) first(ctx context.Context, ends map[TopicPartition]int64) (map[TopicPartition]int64, error) {
	switch {
	case f.earliest:
		return nil, nil
	case f.offsets != nil:
		return f.offsets(ctx)
	}
	return ends, nil
}

// checkPlans refuses a set that leaves a create event without any destination.
func (s *Store) checkPlans(set []Destination, latest map[string]*Version) error {
	var missing []string
	for eventType, role := range s.cfg.Roles {
		taken := slices.ContainsFunc(set, func(d Destination) bool { return slices.Contains(d.EventTypes, eventType) })
		for _, v := range latest {
			taken = taken || v.Kind == KindGo && !v.Removed && slices.Contains(v.EventTypes, eventType)
		}
		if role == saga.Create && !taken {
			missing = append(missing, eventType)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("%w: %s; add it to the `on:` of a destination file", ErrEmptyPlan, strings.Join(missing, ", "))
	}
	return nil
}

func latestVersions(ctx context.Context, tx pgx.Tx) (map[string]*Version, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT ON (name) name, version, kind, hash, removed, spec, event_types, rules
FROM ebb.destinations ORDER BY name, version DESC`)
	if err != nil {
		return nil, err
	}
	out := map[string]*Version{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Version, error) {
		v := &Version{Rules: &saga.Rules{}}
		var rules []byte
		if err := row.Scan(&v.Name, &v.Version, &v.Kind, &v.Hash, &v.Removed, &v.Source, &v.EventTypes, &rules); err != nil {
			return nil, err
		}
		out[v.Name] = v
		return v, json.Unmarshal(rules, v.Rules)
	})
	return out, err
}

// compare tells what applying the set of files changes, by name.
func compare(set []Destination, latest map[string]*Version) []Change {
	var changes []Change
	wanted := map[string]bool{}
	for _, d := range set {
		wanted[d.Name] = true
		changes = append(changes, compareOne(d, KindFile, latest[d.Name]))
	}
	for name, v := range latest {
		if !wanted[name] && !v.Removed && v.Kind == KindFile {
			changes = append(changes, Change{name, Removed, v.Version + 1})
		}
	}
	slices.SortFunc(changes, func(x, y Change) int { return strings.Compare(x.Name, y.Name) })
	return changes
}

func compareOne(d Destination, kind Kind, v *Version) Change {
	switch {
	case v == nil:
		return Change{d.Name, Added, 1}
	case v.Removed:
		return Change{d.Name, Added, v.Version + 1}
	case v.Kind != kind || v.Hash != d.Hash || !sameRules(v.Rules, &d.Rules):
		return Change{d.Name, Changed, v.Version + 1}
	}
	return Change{d.Name, Unchanged, v.Version}
}

// sameRules compares rules as they are stored: a release may derive other rules from the same file.
func sameRules(x, y *saga.Rules) bool {
	a, errA := json.Marshal(x)
	b, errB := json.Marshal(y)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func register(ctx context.Context, tx pgx.Tx, kind Kind, set []Destination, changes []Change, latest map[string]*Version,
	ends, first map[TopicPartition]int64,
) error {
	for _, c := range changes {
		if c.Action == Unchanged {
			continue
		}
		d := Destination{Name: c.Name}
		if i := slices.IndexFunc(set, func(d Destination) bool { return d.Name == c.Name }); i >= 0 {
			d = set[i]
		} else {
			old := latest[c.Name]
			d = Destination{Name: c.Name, Hash: old.Hash, Source: old.Source, EventTypes: old.EventTypes, Rules: *old.Rules}
		}
		rules, err := json.Marshal(d.Rules)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO ebb.destinations (name, version, kind, hash, spec, event_types, rules, removed)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, d.Name, c.Version, string(kind), d.Hash, d.Source, d.EventTypes, rules, c.Action == Removed)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		starts := ends
		if c.Version == 1 {
			starts = first
		}
		for p, start := range starts {
			_, err := tx.Exec(ctx, `INSERT INTO ebb.destination_offsets (name, version, topic, partition, start_offset)
VALUES ($1, $2, $3, $4, $5)`, d.Name, c.Version, p.Topic, p.Partition, start)
			if err != nil {
				return fmt.Errorf("%s: start offsets: %w", c.Name, err)
			}
		}
	}
	return nil
}
