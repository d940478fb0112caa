package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is what an order of the load is like.
type Kind string

// The kinds.
const (
	Domestic      Kind = "domestic"
	International Kind = "international"
	// Refused orders carry a mark that makes one of the simulated destinations refuse them, each in its turn.
	Refused Kind = "refused"
	// Cancelled orders are cancelled as soon as they are accepted.
	Cancelled Kind = "cancelled"
)

// Kinds lists every kind.
func Kinds() []Kind { return []Kind{Domestic, International, Refused, Cancelled} }

// Mix is the share of each kind.
type Mix map[Kind]int

// ParseMix reads "domestic=70,international=20,refused=5,cancelled=5". The numbers are shares, of whatever sum.
func ParseMix(text string) (Mix, error) {
	m := Mix{}
	for part := range strings.SplitSeq(text, ",") {
		name, share, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(share)
		if !slices.Contains(Kinds(), Kind(name)) || err != nil || n < 0 || n > 1_000_000 {
			return nil, fmt.Errorf("mix %q: want KIND=SHARE,… with the kinds %v and shares from 0, such as domestic=70,refused=30", text, Kinds())
		}
		if _, twice := m[Kind(name)]; twice {
			return nil, fmt.Errorf("mix %q: %s is given twice", text, name)
		}
		m[Kind(name)] = n
	}
	if m.sum() == 0 {
		return nil, fmt.Errorf("mix %q: all shares are 0", text)
	}
	return m, nil
}

func (m Mix) sum() (n int) {
	for _, share := range m {
		n += share
	}
	return n
}

// picker deals kinds by their shares, evenly spread.
type picker struct {
	mix  Mix
	debt map[Kind]int
}

// next is the kind that its share owes most.
func (p *picker) next() Kind {
	if p.debt == nil {
		p.debt = map[Kind]int{}
	}
	var best Kind
	for _, k := range Kinds() {
		p.debt[k] += p.mix[k]
		if p.mix[k] > 0 && (best == "" || p.debt[k] > p.debt[best]) {
			best = k
		}
	}
	p.debt[best] -= p.mix.sum()
	return best
}
