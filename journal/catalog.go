package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/ebbline/ebb/journal/saga"
)

// ErrUnknownVersion is returned where a step names a destination's version that is not registered: the database was restored from
// before `ebb config apply`, or a row was changed by hand.
var ErrUnknownVersion = errors.New("the destination's version is not registered; run `ebb config apply`")

// Version is one registered version of a destination; it never changes.
type Version struct {
	Name    string
	Version int
	// Kind says who registers it.
	Kind Kind
	// Hash and Source are of the destination file, byte for byte; for a Go program, of the description of its options.
	Hash       string
	Source     []byte
	EventTypes []string
	Rules      *saga.Rules
	// Removed marks the end of a destination.
	Removed bool
	// Start says from which offset on the version is in force, by topic and partition; what is missing counts from 0.
	Start map[TopicPartition]int64
}

// Kind says who registers a destination.
type Kind string

// The kinds of destinations.
const (
	KindFile Kind = "file" // a folder of files, as one set: Apply
	KindGo   Kind = "go"   // a Go program, by itself: Join
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// catalog caches the registered versions. Versions are immutable, so that only their number can be out of date.
type catalog struct {
	mu       sync.RWMutex
	revision int64
	versions map[string][]*Version // by name, ascending
}

func newCatalog() *catalog { return &catalog{versions: map[string][]*Version{}} }

// refresh loads the catalog; it is called outside transactions of the store.
func (s *Store) refresh(ctx context.Context) error {
	versions, err := s.Versions(ctx)
	if err != nil {
		return err
	}
	byName := map[string][]*Version{}
	for _, v := range versions {
		byName[v.Name] = append(byName[v.Name], v)
	}
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	if int64(len(versions)) >= s.catalog.revision {
		s.catalog.versions, s.catalog.revision = byName, int64(len(versions))
	}
	return nil
}

// Versions reads every registered version, by name and ascending version.
func (s *Store) Versions(ctx context.Context) ([]*Version, error) {
	rows, err := s.pool.Query(ctx, `SELECT d.name, d.version, d.kind, d.hash, d.spec, d.event_types, d.rules, d.removed,
	coalesce((SELECT json_agg(json_build_object('topic', o.topic, 'partition', o.partition, 'offset', o.start_offset::text))
		FROM ebb.destination_offsets o WHERE o.name = d.name AND o.version = d.version), '[]')
FROM ebb.destinations d ORDER BY d.name, d.version`)
	if err != nil {
		return nil, fmt.Errorf("read destinations: %w", err)
	}
	versions, err := pgx.CollectRows(rows, scanVersion)
	if err != nil {
		return nil, fmt.Errorf("read destinations: %w", err)
	}
	return versions, nil
}

func scanVersion(row pgx.CollectableRow) (*Version, error) {
	v := &Version{Rules: &saga.Rules{}, Start: map[TopicPartition]int64{}}
	var rules, starts []byte
	if err := row.Scan(&v.Name, &v.Version, &v.Kind, &v.Hash, &v.Source, &v.EventTypes, &rules, &v.Removed, &starts); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(rules, v.Rules); err != nil {
		return nil, fmt.Errorf("rules of %s version %d: %w", v.Name, v.Version, err)
	}
	var list []struct {
		Topic     string
		Partition int32
		Offset    int64 `json:",string"`
	}
	if err := json.Unmarshal(starts, &list); err != nil {
		return nil, fmt.Errorf("start offsets of %s version %d: %w", v.Name, v.Version, err)
	}
	for _, o := range list {
		v.Start[TopicPartition{o.Topic, o.Partition}] = o.Offset
	}
	return v, nil
}

// rulesOf gives the rules of a registered version, reading the catalog again if it is not known yet.
func (s *Store) rulesOf(ctx context.Context, name string, version int) (*saga.Rules, error) {
	v, err := s.VersionOf(ctx, name, version)
	if err != nil {
		return nil, err
	}
	return v.Rules, nil
}

// VersionOf gives a registered version, ErrUnknownVersion if there is none.
func (s *Store) VersionOf(ctx context.Context, name string, version int) (*Version, error) {
	if v := s.catalog.find(name, version); v != nil {
		return v, nil
	}
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	if v := s.catalog.find(name, version); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("%w: %s version %d", ErrUnknownVersion, name, version)
}

func (c *catalog) find(name string, version int) *Version {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := c.versions[name]
	if version < 1 || version > len(all) {
		return nil
	}
	return all[version-1]
}

// at is the number of versions that the catalog knows.
func (c *catalog) at() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.revision
}

// plan is the destinations that an event type has at a position, in the order of their names: a pure function of the position.
func (c *catalog) plan(eventType string, p Position) []saga.Planned {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []saga.Planned
	for name, versions := range c.versions {
		v := inForce(versions, p)
		if v != nil && !v.Removed && slices.Contains(v.EventTypes, eventType) {
			out = append(out, saga.Planned{Dest: name, SpecVersion: v.Version, Rules: v.Rules})
		}
	}
	slices.SortFunc(out, func(x, y saga.Planned) int {
		if x.Dest < y.Dest {
			return -1
		}
		return 1
	})
	return out
}

// inForce is the latest version whose start offset is not above the position, nil for none.
func inForce(versions []*Version, p Position) *Version {
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].Start[TopicPartition{p.Topic, p.Partition}] <= p.Offset {
			return versions[i]
		}
	}
	return nil
}
