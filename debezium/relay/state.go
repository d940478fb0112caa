package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// System names one history of one server. Positions are comparable only within it.
type System struct {
	ID       string // system identifier, a decimal number
	Timeline int32
	Database string
}

func (s System) String() string {
	return fmt.Sprintf("system %s timeline %d database %q", s.ID, s.Timeline, s.Database)
}

// Position is what the state topic holds for a slot: Kafka has everything up to LSN. It is kept in Kafka and not in the
// database, so that a restored database cannot take it back with it.
type Position struct {
	Slot   string
	System System
	LSN    pglogrepl.LSN
	At     time.Time // when it was written, UTC
}

// positionRecord is the JSON form of a Position.
type positionRecord struct {
	Format   int       `json:"format"`
	Slot     string    `json:"slot"`
	SystemID string    `json:"systemId"`
	Timeline int32     `json:"timeline"`
	Database string    `json:"database"`
	LSN      string    `json:"lsn"`
	At       time.Time `json:"at"`
}

const positionFormat = 1

func (p Position) record(topic string) (*kgo.Record, error) {
	value, err := json.Marshal(positionRecord{
		Format: positionFormat, Slot: p.Slot, SystemID: p.System.ID, Timeline: p.System.Timeline,
		Database: p.System.Database, LSN: p.LSN.String(), At: p.At.UTC(),
	})
	if err != nil {
		return nil, fmt.Errorf("encode a position: %w", err)
	}
	return &kgo.Record{Topic: topic, Key: []byte(p.Slot), Value: value}, nil
}

func parsePosition(value []byte) (Position, error) {
	var r positionRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return Position{}, fmt.Errorf("a position of %d bytes is not the expected JSON: %w", len(value), err)
	}
	if r.Format != positionFormat {
		return Position{}, fmt.Errorf("a position has format %d, this release reads %d: use the release that wrote it", r.Format, positionFormat)
	}
	lsn, err := pglogrepl.ParseLSN(r.LSN)
	if err != nil {
		return Position{}, fmt.Errorf("a position has an unreadable LSN: %w", err)
	}
	return Position{Slot: r.Slot, LSN: lsn, At: r.At,
		System: System{ID: r.SystemID, Timeline: r.Timeline, Database: r.Database}}, nil
}

// state is the topic of positions. It has a client of its own, so that a position need not queue behind the events that
// it speaks of.
type state struct {
	client *kgo.Client
	topic  string
}

// ensure makes the topic: one partition, compacted, replicated as the cluster's default says.
func (s *state) ensure(ctx context.Context) error {
	compact := "compact"
	resp, err := kadm.NewClient(s.client).CreateTopic(ctx, 1, -1, map[string]*string{"cleanup.policy": &compact}, s.topic)
	if errors.Is(err, kerr.TopicAlreadyExists) || errors.Is(resp.Err, kerr.TopicAlreadyExists) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the state topic %q: %w", s.topic, err)
	}
	return nil
}

// load reads the topic to its end: the newest position of the slot, and the names of all slots it holds.
func (s *state) load(ctx context.Context, slot string) (found *Position, known []string, err error) {
	ends, err := kadm.NewClient(s.client).ListEndOffsets(ctx, s.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find the end of state topic %q: %w", s.topic, err)
	}
	left := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
			from[o.Partition] = kgo.NewOffset().AtStart()
		}
	})
	defer s.client.PurgeTopicsFromConsuming(s.topic)
	s.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: from})
	seen := map[string]bool{}
	for len(left) > 0 {
		fetches := s.client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, nil, fmt.Errorf("read state topic %q: %w", s.topic, err)
		}
		if err := collectPositions(fetches, slot, left, seen, &found); err != nil {
			return nil, nil, fmt.Errorf("state topic %q: %w", s.topic, err)
		}
	}
	for name := range seen {
		known = append(known, name)
	}
	slices.Sort(known)
	return found, known, nil
}

func collectPositions(fetches kgo.Fetches, slot string, left map[int32]int64, seen map[string]bool, found **Position) error {
	var problem error
	fetches.EachRecord(func(r *kgo.Record) {
		if r.Offset+1 >= left[r.Partition] {
			delete(left, r.Partition)
		}
		if problem != nil || r.Value == nil {
			return
		}
		seen[string(r.Key)] = true
		if string(r.Key) != slot {
			return
		}
		p, err := parsePosition(r.Value)
		if err != nil {
			problem = err
			return
		}
		*found = &p
	})
	return problem
}

// store writes a position and waits until Kafka has it, or ctx ends: the client itself would wait for a request that is
// on its way whatever becomes of ctx.
func (s *state) store(ctx context.Context, p Position) error {
	record, err := p.record(s.topic)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	s.client.Produce(ctx, record, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("write to state topic %q: %w", s.topic, err)
	}
	return nil
}
