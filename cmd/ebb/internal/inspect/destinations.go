package inspect

import (
	"context"
	"time"

	"github.com/ebbline/ebb/journal"
)

// Destination is a registered destination and what it has to do.
type Destination struct {
	Name       string   `json:"name"`
	Version    int      `json:"version"` // the newest
	State      string   `json:"state"`   // ACTIVE, PAUSED or REMOVED
	Kind       string   `json:"kind"`    // file, or go for one that a program registers
	EventTypes []string `json:"eventTypes"`
	After      []string `json:"after"`
	Hash       string   `json:"hash"` // of the newest version's file
	// Paused says who paused it and why; empty if it is not.
	Paused  string `json:"paused,omitempty"`
	Ready   int64  `json:"ready"`
	Calling int64  `json:"calling"`
	Parked  int64  `json:"parked"`
	// OldestSeconds is the age of the oldest step that is neither settled nor parked; 0 if there is none.
	OldestSeconds int64 `json:"oldestSeconds"`
	// Versions are all registered versions, the oldest first.
	Versions []DestinationVersion `json:"versions"`
}

// DestinationVersion is one version of a destination's file.
type DestinationVersion struct {
	Version int    `json:"version"`
	Hash    string `json:"hash"`
	Removed bool   `json:"removed,omitempty"`
}

// States of a destination.
const (
	Active  = "ACTIVE"  // it is part of the plans of new events
	Paused  = "PAUSED"  // it is, and nothing is sent to it
	Removed = "REMOVED" // what was begun is finished, new events do not go there
)

// Catalog is the registered versions and what they have to do.
type Catalog interface {
	Versions(ctx context.Context) ([]*journal.Version, error)
	BacklogOf(ctx context.Context, destination string) (journal.Backlog, error)
	Paused(ctx context.Context) (map[string]journal.Pause, error)
}

// Destinations lists the registered destinations by name.
func Destinations(ctx context.Context, c Catalog) ([]Destination, error) {
	versions, err := c.Versions(ctx)
	if err != nil {
		return nil, err
	}
	out := []Destination{}
	for _, v := range versions { // by name and version
		if len(out) == 0 || out[len(out)-1].Name != v.Name {
			out = append(out, Destination{Name: v.Name})
		}
		d := &out[len(out)-1]
		d.Version, d.Hash, d.State, d.Kind = v.Version, v.Hash, Active, string(v.Kind)
		d.Versions = append(d.Versions, DestinationVersion{v.Version, v.Hash, v.Removed})
		if v.Removed { // such a row ends the destination; it repeats what was last in force
			d.State = Removed
			continue
		}
		d.EventTypes, d.After = orEmpty(v.EventTypes), orEmpty(v.Rules.After)
	}
	paused, err := c.Paused(ctx)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if p, ok := paused[out[i].Name]; ok {
			out[i].State, out[i].Paused = Paused, p.Who+": "+p.Reason
		}
		b, err := c.BacklogOf(ctx, out[i].Name)
		if err != nil {
			return nil, err
		}
		out[i].Ready, out[i].Calling, out[i].Parked = b.Ready, b.Calling, b.Parked
		out[i].OldestSeconds = int64(b.Oldest / time.Second)
	}
	return out, nil
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
