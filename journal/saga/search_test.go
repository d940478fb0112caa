package saga_test

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
)

// search explores every history of a world, shortest first.
type search struct {
	b     *bounds
	width int
	keys  []byte
	from  []uint32
	by    []uint32
	table []uint32
	seed  maphash.Seed
}

// outcome of a search.
type outcome struct {
	states, moves int
	why           string
	trace         []string
	stopped       bool
}

func (o outcome) String() string {
	if o.why == "" {
		return fmt.Sprintf("%d states, %d moves, no violation", o.states, o.moves)
	}
	return fmt.Sprintf("%s, after %d steps (%d states seen):\n  %s", o.why, len(o.trace)-1, o.states, strings.Join(o.trace, "\n  "))
}

// explore runs the search to its end, to the first violation, or to the limit of states.
func explore(b *bounds, limit int) outcome {
	s := &search{b: b, table: make([]uint32, 1<<16), seed: maphash.MakeSeed()}
	w := newWorld(b)
	start := w.encode(nil)
	s.width = len(start)
	s.add(start, 0, 0)
	var list []move
	var key, again []byte
	out := outcome{}
	for i := 0; i < len(s.from); i++ {
		if len(s.from) > limit {
			out.stopped = true
			break
		}
		w.decode(s.key(i))
		list = w.moves(list[:0])
		if why := w.broken(); why != "" {
			return s.fail(out, i, why)
		}
		rest := true
		for _, m := range list {
			w.decode(s.key(i))
			w.apply(m)
			key = w.encode(key[:0])
			if w.bad != "" {
				j := s.append(key, uint32(i), m.pack())
				return s.fail(out, j, w.bad)
			}
			out.moves++
			rest = rest && (m.optional() || bytes.Equal(key, s.key(i)))
			s.add(key, uint32(i), m.pack())
		}
		w.decode(s.key(i))
		if rest {
			if why := w.stuck(); why != "" {
				return s.fail(out, i, why)
			}
		}
		if b.outcomes {
			continue
		}
		w.repeats()
		if again = w.encode(again[:0]); !bytes.Equal(again, s.key(i)) {
			w.breaks("G11: a repeat changed something")
		}
		if w.bad != "" {
			return s.fail(out, i, w.bad)
		}
	}
	out.states = len(s.from)
	return out
}

func (s *search) key(i int) []byte { return s.keys[i*s.width : (i+1)*s.width] }

// add remembers a state that has not been seen.
func (s *search) add(key []byte, from, by uint32) {
	mask := uint64(len(s.table) - 1)
	h := maphash.Bytes(s.seed, key) & mask
	for ; s.table[h] != 0; h = (h + 1) & mask {
		if bytes.Equal(s.key(int(s.table[h]-1)), key) {
			return
		}
	}
	s.table[h] = uint32(s.append(key, from, by) + 1)
	if len(s.from)*2 > len(s.table) {
		s.grow()
	}
}

func (s *search) append(key []byte, from, by uint32) int {
	s.keys = append(s.keys, key...)
	s.from = append(s.from, from)
	s.by = append(s.by, by)
	return len(s.from) - 1
}

func (s *search) grow() {
	s.table = make([]uint32, 2*len(s.table))
	mask := uint64(len(s.table) - 1)
	for i := range s.from {
		h := maphash.Bytes(s.seed, s.key(i)) & mask
		for s.table[h] != 0 {
			h = (h + 1) & mask
		}
		s.table[h] = uint32(i + 1)
	}
}

// fail tells the shortest history that leads to state i.
func (s *search) fail(out outcome, i int, why string) outcome {
	out.why, out.states = why, len(s.from)
	w := newWorld(s.b)
	w.decode(s.key(i))
	out.trace = append(out.trace, "in the end: "+strings.ReplaceAll(strings.TrimSpace(w.String()), "\n", "\n    "))
	for i != 0 {
		out.trace = append(out.trace, unpack(s.by[i]).String())
		i = int(s.from[i])
	}
	for x, y := 0, len(out.trace)-1; x < y; x, y = x+1, y-1 {
		out.trace[x], out.trace[y] = out.trace[y], out.trace[x]
	}
	return out
}
