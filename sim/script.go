package sim

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// script is the ordered list of faults that are set.
type script struct {
	now func() time.Time

	mu     sync.Mutex
	faults []scripted
	lastID int
	serial int
}

type scripted struct {
	Fault
	until  time.Time // zero: no end
	draws  int
	serial int // from 1; tells a fault from an earlier one of the same id
}

// set replaces the script; add appends to it. Both return the faults with ids.
func (s *script) set(faults []Fault) ([]Fault, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.faults
	s.faults = nil
	added, err := s.addLocked(faults)
	if err != nil {
		s.faults = old
	}
	return added, err
}

func (s *script) add(faults []Fault) ([]Fault, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addLocked(faults)
}

func (s *script) addLocked(faults []Fault) ([]Fault, error) {
	next := slices.Clone(s.faults)
	added := make([]Fault, 0, len(faults))
	for _, f := range faults {
		if f.ID == "" {
			s.lastID++
			f.ID = "f" + strconv.Itoa(s.lastID)
		}
		if slices.ContainsFunc(next, func(o scripted) bool { return o.ID == f.ID }) {
			return nil, fmt.Errorf("fault id %q is taken; choose another or leave it out", f.ID)
		}
		f.Struck = 0
		s.serial++
		one := scripted{Fault: f, serial: s.serial}
		if f.For > 0 {
			one.until = s.now().Add(time.Duration(f.For))
		}
		next, added = append(next, one), append(added, f)
	}
	s.faults = next
	return added, nil
}

func (s *script) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.faults)
	s.faults = slices.DeleteFunc(s.faults, func(f scripted) bool { return f.ID == id })
	return len(s.faults) < n
}

// list returns the faults that have not ended, with their counts.
func (s *script) list() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fault, 0, len(s.faults))
	for i := range s.faults {
		if s.faults[i].live(s.now()) {
			out = append(out, s.faults[i].Fault)
		}
	}
	return out
}

// pick returns the fault that strikes the call, or nil.
func (s *script) pick(c *Call) *Fault {
	return s.strike(func(f *Fault) bool { return f.matches(c) })
}

// pickConnection returns the fault that strikes a new connection to the
// destination, or nil.
func (s *script) pickConnection(destination string) *Fault {
	return s.strike(func(f *Fault) bool { return f.refuses(destination) })
}

func (f *Fault) refuses(destination string) bool {
	return f.is(RefuseConnection) && f.Destination == destination
}

func (s *script) strike(match func(*Fault) bool) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for i := range s.faults {
		f := &s.faults[i]
		if !f.live(now) || !match(&f.Fault) {
			continue
		}
		f.draws++
		if f.Probability > 0 && !f.Probability.hits(f.Seed, f.ID, strconv.Itoa(f.draws)) {
			continue
		}
		f.Struck++
		struck := f.Fault
		return &struck
	}
	return nil
}

func (f *scripted) live(now time.Time) bool {
	return (f.until.IsZero() || now.Before(f.until)) && (f.Next == 0 || f.Struck < f.Next)
}

// refusing returns the live fault that keeps the destination's own listener
// from taking connections.
func (s *script) refusing(destination string) *scripted {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.faults {
		if f := &s.faults[i]; f.live(s.now()) && f.refuses(destination) {
			found := *f
			return &found
		}
	}
	return nil
}

// nextEnd returns when the first fault ends by its time, if one does.
func (s *script) nextEnd() (end time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for i := range s.faults {
		u := s.faults[i].until
		if !u.IsZero() && now.Before(u) && (end.IsZero() || u.Before(end)) {
			end = u
		}
	}
	return end, !end.IsZero()
}
