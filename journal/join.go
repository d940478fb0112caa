package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors of registering destinations of both kinds.
var (
	// ErrOtherKind is returned where the name is in use by a destination of the other kind.
	ErrOtherKind = errors.New("the name is taken by a destination of the other kind")
	// ErrCycle is returned where destinations would wait for each other.
	ErrCycle = errors.New("destinations wait for each other")
	// ErrUnknownAfter is returned by Join where the destination comes after one that is not registered.
	ErrUnknownAfter = errors.New("comes after a destination that is not registered")
)

// Join registers one destination of a Go program beside what there is. Joining the same one again, as every replica does at its start,
// changes nothing. Errors: ErrOtherKind, ErrCycle, ErrUnknownAfter.
func (s *Store) Join(ctx context.Context, d Destination, ends EndOffsets, from From) (Change, error) {
	set := []Destination{d}
	changes, err := s.apply(ctx, KindGo, set, ends, from, false, func(latest map[string]*Version) ([]Change, error) {
		if err := checkAfter(d, latest); err != nil {
			return nil, err
		}
		return []Change{compareOne(d, KindGo, latest[d.Name])}, checkKinds(set, latest, KindGo)
	})
	if err != nil {
		return Change{}, err
	}
	return changes[0], nil
}

// Leave ends a destination of a Go program: events that are written from now on do not go there. Its program is still needed until what
// was begun is finished, and as long as sagas may be unwound. Errors: ErrUnknownVersion, ErrOtherKind.
func (s *Store) Leave(ctx context.Context, name string, ends EndOffsets) (Change, error) {
	changes, err := s.apply(ctx, KindGo, nil, ends, FromNow, false, func(latest map[string]*Version) ([]Change, error) {
		v := latest[name]
		switch {
		case v == nil:
			return nil, fmt.Errorf("%w: %s", ErrUnknownVersion, name)
		case v.Kind != KindGo:
			return nil, fmt.Errorf("%w: %s is a file: remove it from its folder and run `ebb config apply`", ErrOtherKind, name)
		case v.Removed:
			return []Change{{name, Unchanged, v.Version}}, nil
		}
		return []Change{{name, Removed, v.Version + 1}}, nil
	})
	if err != nil {
		return Change{}, err
	}
	return changes[0], nil
}

// checkKinds refuses names that are in use by the other kind.
func checkKinds(set []Destination, latest map[string]*Version, kind Kind) error {
	var problems []error
	for _, d := range set {
		v := latest[d.Name]
		switch {
		case v == nil || v.Removed || v.Kind == kind:
		case kind == KindFile:
			problems = append(problems, fmt.Errorf("%w: %s is registered by a Go program; end that one, or give the file another name", ErrOtherKind, d.Name))
		default:
			problems = append(problems, fmt.Errorf("%w: %s is a destination file; remove it from its folder and run `ebb config apply`, or use another name", ErrOtherKind, d.Name))
		}
	}
	return errors.Join(problems...)
}

// checkAfter refuses what would wait for nothing, most likely because it is mistyped.
func checkAfter(d Destination, latest map[string]*Version) error {
	var unknown []string
	for _, name := range d.Rules.After {
		if v := latest[name]; v == nil || v.Removed {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%w: %s after %s; `ebb destination list` shows what is registered", ErrUnknownAfter, d.Name, strings.Join(unknown, ", "))
	}
	return nil
}

// checkCycles refuses destinations that would wait for each other once the changes are made. The files of a folder are checked among
// themselves before; here both kinds meet.
func checkCycles(set []Destination, changes []Change, latest map[string]*Version) error {
	after := map[string][]string{}
	for name, v := range latest {
		if !v.Removed {
			after[name] = v.Rules.After
		}
	}
	for _, c := range changes {
		if c.Action == Removed {
			delete(after, c.Name)
		}
	}
	for _, d := range set {
		after[d.Name] = d.Rules.After
	}
	done := map[string]bool{}
	var path []string
	var visit func(name string) error
	visit = func(name string) error {
		if at := slices.Index(path, name); at >= 0 {
			return fmt.Errorf("%w: %s; remove one of these edges", ErrCycle, strings.Join(append(slices.Clone(path[at:]), name), " after "))
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, next := range after[name] {
			if err := visit(next); err != nil {
				return err
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		return nil
	}
	for _, d := range set {
		if err := visit(d.Name); err != nil {
			return err
		}
	}
	return nil
}
