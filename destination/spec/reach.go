package spec

import (
	"fmt"
	"reflect"
)

// unreachable reports routes that an earlier route always takes first. It
// finds what can be decided from two conditions alone; it never reports a
// route that could be taken.
func (p *fileParser) unreachable() {
	if p.unclear {
		return
	}
	routes := p.spec.Routes
	for i := 1; i < len(routes); i++ {
		for j := range i {
			if covers(routes[j].When, routes[i].When) {
				p.add(routes[i].Pos, fmt.Sprintf("routes[%d] is never reached: routes[%d] at line %d always matches first", i, j, routes[j].Pos.Line),
					"put the narrower condition first, or remove one")
				break
			}
		}
	}
}

// covers reports whether earlier is true whenever later is.
func covers(earlier, later *Condition) bool {
	switch {
	case earlier == nil:
		return true
	case later == nil:
		return false
	case same(*earlier, *later):
		return true
	}
	for i := range earlier.Any {
		if covers(&earlier.Any[i], later) {
			return true
		}
	}
	for i := range later.All {
		if covers(earlier, &later.All[i]) {
			return true
		}
	}
	if earlier.Op == "" || later.Op == "" || earlier.From != later.From || earlier.Path.text != later.Path.text {
		return false
	}
	if _, single := earlier.Path.Simple(); !single {
		return false
	}
	// Every operator needs a value to be there, so exists covers them all.
	return earlier.Op == Exists || coversNumbers(*earlier, *later)
}

func same(a, b Condition) bool { return reflect.DeepEqual(plain(a), plain(b)) }

// plain drops what does not change a condition's meaning.
func plain(c Condition) any {
	if c.Op != "" {
		return []any{c.From, c.Path.text, c.Op, c.Value.Kind, c.Value.Text}
	}
	var parts []any
	for _, list := range [][]Condition{c.All, c.Any} {
		group := []any{}
		for _, inner := range list {
			group = append(group, plain(inner))
		}
		parts = append(parts, group)
	}
	if c.Not != nil {
		parts = append(parts, plain(*c.Not))
	}
	return parts
}

// coversNumbers compares two ranges such as "lt 50" and "lt 40".
func coversNumbers(earlier, later Condition) bool {
	if earlier.Value.Kind != LiteralNumber || later.Value.Kind != LiteralNumber {
		return false
	}
	order := later.Value.Number.Cmp(earlier.Value.Number)
	switch later.Op {
	case Eq:
		return earlier.Op.Holds(order)
	case Lt, Lte:
		return (earlier.Op == Lte || earlier.Op == Lt && (order < 0 || later.Op == Lt)) && order <= 0
	case Gt, Gte:
		return (earlier.Op == Gte || earlier.Op == Gt && (order > 0 || later.Op == Gt)) && order >= 0
	}
	return false
}

// Holds reports whether a comparison with the given result of Decimal.Cmp
// satisfies the operator. It is false for operators that compare nothing.
func (o Op) Holds(order int) bool {
	switch o {
	case Eq:
		return order == 0
	case Ne:
		return order != 0
	case Gt:
		return order > 0
	case Gte:
		return order >= 0
	case Lt:
		return order < 0
	case Lte:
		return order <= 0
	}
	return false
}
