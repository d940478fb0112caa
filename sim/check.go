package sim

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule names what a [Violation] broke.
type Rule string

const (
	// TwoLive means: an order had two live charges (holds, shipments) at once.
	TwoLive Rule = "two_live"
	// UndoBeforeDo means: something was undone that had not been done.
	UndoBeforeDo Rule = "undo_before_do"
	// UndoneTwice means: one thing was undone more than once.
	UndoneTwice Rule = "undone_twice"
	// WrongAmount means: charges minus refunds is neither nothing nor the exact amount.
	WrongAmount Rule = "wrong_amount"
	// WrongCurrency means: a refund was in another currency than its charge.
	WrongCurrency Rule = "wrong_currency"
	// WrongOrder means: a call for one order undid what belonged to another.
	WrongOrder Rule = "wrong_order"
	// RepeatedKey means: one Idempotency-Key had more than one effect.
	RepeatedKey Rule = "repeated_key"
	// NotReverse means: the undos of an order were not in the reverse of its dos.
	NotReverse Rule = "not_reverse"
)

// Violation is one breach found in the effects ledger.
type Violation struct {
	Rule      Rule    `json:"rule"`
	Aggregate string  `json:"aggregate"`
	Effects   []int64 `json:"effects"` // sequence numbers, in order
	Detail    string  `json:"detail"`
}

// String returns one line for a test's output.
func (v Violation) String() string {
	return fmt.Sprintf("%s: order %s: %s (effects %v)", v.Rule, v.Aggregate, v.Detail, v.Effects)
}

// family groups kinds of which an order may have at most one live thing.
type family string

const (
	money     family = "charge"
	stock     family = "stock hold"
	transport family = "shipment"
)

// undoKinds maps each kind that can be undone to the kind that undoes it.
var undoKinds = map[Kind]Kind{
	Charge: Refund, HighValue: HighValueCancel, StockHold: StockRelease, Shipment: ShipmentCancel,
}

var families = map[Kind]family{
	Charge: money, HighValue: money, Refund: money, HighValueCancel: money,
	StockHold: stock, StockRelease: stock, Shipment: transport, ShipmentCancel: transport,
}

// Check is invariant I1 and what follows from it. Per order: never two live
// charges, charges minus refunds is nothing or exactly the amount, no refund
// before its charge, nothing undone twice; the same for holds and shipments;
// and one effect per key. It returns the breaches in the order of their last
// effect. Whether an order that ended compensated has anything live left is
// for [Summarize] to show: only the caller knows how it ended.
func Check(effects []Effect) []Violation {
	c := checker{
		things: map[string]*history{}, live: map[liveKey][]*history{}, keys: map[[2]string]int64{},
	}
	for _, e := range inOrder(effects) {
		c.key(e)
		switch {
		case e.Direction == Undo:
			c.undo(e)
		case families[e.Kind] != "":
			c.do(e)
		}
	}
	return c.found
}

func inOrder(effects []Effect) []Effect {
	return slices.SortedStableFunc(slices.Values(effects), func(a, b Effect) int { return cmp.Compare(a.Seq, b.Seq) })
}

// history is what happened to one thing.
type history struct {
	made   Effect
	undone []int64
}

type liveKey struct {
	aggregate string
	family    family
}

type checker struct {
	things map[string]*history
	live   map[liveKey][]*history
	keys   map[[2]string]int64
	found  []Violation
}

func (c *checker) breach(rule Rule, aggregate, detail string, effects ...int64) {
	c.found = append(c.found, Violation{rule, aggregate, effects, detail})
}

func (c *checker) key(e Effect) {
	if e.Key == "" {
		return
	}
	k := [2]string{e.Destination, e.Key}
	if first, ok := c.keys[k]; ok {
		c.breach(RepeatedKey, e.Aggregate, fmt.Sprintf("%s under a key that had an effect before", e.Kind), first, e.Seq)
		return
	}
	c.keys[k] = e.Seq
}

func (c *checker) do(e Effect) {
	h := &history{made: e}
	k := liveKey{e.Aggregate, families[e.Kind]}
	for _, other := range c.live[k] {
		c.breach(TwoLive, e.Aggregate, fmt.Sprintf("%s %s beside the live %s", k.family, e.Thing, other.made.Thing),
			other.made.Seq, e.Seq)
	}
	c.live[k] = append(c.live[k], h)
	c.things[e.Thing] = h
	if k.family == money {
		if amount, err := parseDecimal(e.Amount); err != nil || amount.Sign() <= 0 {
			c.breach(WrongAmount, e.Aggregate, fmt.Sprintf("%s of %q", e.Kind, e.Amount), e.Seq)
		}
	}
}

func (c *checker) undo(e Effect) {
	h := c.things[e.Thing]
	if h == nil || undoKinds[h.made.Kind] != e.Kind {
		c.breach(UndoBeforeDo, e.Aggregate, fmt.Sprintf("%s of %s, which had not been made", e.Kind, e.Thing), e.Seq)
		return
	}
	if e.Caller != "" || e.Aggregate != h.made.Aggregate {
		c.breach(WrongOrder, h.made.Aggregate,
			fmt.Sprintf("%s of %s by order %s", e.Kind, e.Thing, cmp.Or(e.Caller, e.Aggregate)), h.made.Seq, e.Seq)
	}
	if len(h.undone) > 0 {
		c.breach(UndoneTwice, h.made.Aggregate, fmt.Sprintf("%s of %s again", e.Kind, e.Thing), append(h.undone, e.Seq)...)
	}
	h.undone = append(h.undone, e.Seq)
	k := liveKey{h.made.Aggregate, families[h.made.Kind]}
	c.live[k] = slices.DeleteFunc(c.live[k], func(o *history) bool { return o == h })
	if k.family == money {
		c.sameMoney(h.made, e)
	}
}

func (c *checker) sameMoney(made, undo Effect) {
	charged, err1 := parseDecimal(made.Amount)
	back, err2 := parseDecimal(undo.Amount)
	if err1 != nil || err2 != nil || charged.Cmp(back) != 0 {
		c.breach(WrongAmount, made.Aggregate, fmt.Sprintf("charged %q, gave back %q", made.Amount, undo.Amount), made.Seq, undo.Seq)
	}
	if made.Currency != undo.Currency {
		c.breach(WrongCurrency, made.Aggregate,
			fmt.Sprintf("charged in %q, gave back in %q", made.Currency, undo.Currency), made.Seq, undo.Seq)
	}
}

// CheckReverse finds orders whose undos are not in the reverse of their dos.
// It holds for runs in which no undo was held up: one that cannot go on lets
// the steps that do not depend on it overtake it.
func CheckReverse(effects []Effect) []Violation {
	made, last := map[string]int64{}, map[string]Effect{}
	var found []Violation
	for _, e := range inOrder(effects) {
		switch e.Direction {
		case Do:
			made[e.Thing] = e.Seq
			delete(last, e.Aggregate) // what is done after an undo begins anew
		case Undo:
			if before, ok := last[e.Aggregate]; ok && made[e.Thing] > made[before.Thing] {
				found = append(found, Violation{NotReverse, e.Aggregate, []int64{before.Seq, e.Seq},
					fmt.Sprintf("%s was ended before %s, which was made later", before.Thing, e.Thing)})
			}
			last[e.Aggregate] = e
		}
	}
	return found
}

// CheckAmounts finds orders that were charged something else than their
// amount, given as decimal text by aggregate id. Orders that are not in want,
// or were not charged, are passed over.
func CheckAmounts(effects []Effect, want map[string]string) []Violation {
	var found []Violation
	for _, e := range inOrder(effects) {
		text, ok := want[e.Aggregate]
		if !ok || e.Direction != Do || families[e.Kind] != money {
			continue
		}
		amount, err1 := parseDecimal(text)
		charged, err2 := parseDecimal(e.Amount)
		if err1 != nil || err2 != nil || amount.Cmp(charged) != 0 {
			found = append(found, Violation{WrongAmount, e.Aggregate, []int64{e.Seq},
				fmt.Sprintf("the order is over %q, charged were %q", text, e.Amount)})
		}
	}
	return found
}
