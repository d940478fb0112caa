package sim

import (
	"cmp"
	"maps"
	"math/big"
	"net/http"
	"slices"
)

// Money is what was moved for one order in one currency, as exact decimals.
type Money struct {
	Currency string `json:"currency"`
	Charged  string `json:"charged"`
	Refunded string `json:"refunded"`
	Net      string `json:"net"`
}

// Count is how many things of a family an order had.
type Count struct {
	Made   int `json:"made"`
	Undone int `json:"undone"`
	Live   int `json:"live"`
}

// Summary is what the outside world holds of one order.
type Summary struct {
	Aggregate     string  `json:"aggregate"`
	Money         []Money `json:"money"`
	Charges       Count   `json:"charges"`
	Holds         Count   `json:"holds"`
	Shipments     Count   `json:"shipments"`
	Notifications int     `json:"notifications"`
}

// Live reports whether anything of the order stands that an undo would end.
func (s Summary) Live() bool { return s.Charges.Live+s.Holds.Live+s.Shipments.Live > 0 }

// Summarize adds the effects up per order, in the order of the first effects.
func Summarize(effects []Effect) []Summary {
	var order []string
	sums := map[string]*tally{}
	for _, e := range inOrder(effects) {
		t := sums[e.Aggregate]
		if t == nil {
			t = &tally{charged: map[string]*sum{}, refunded: map[string]*sum{}, live: map[string]family{}}
			t.Aggregate = e.Aggregate
			sums[e.Aggregate], order = t, append(order, e.Aggregate)
		}
		t.add(e)
	}
	out := make([]Summary, len(order))
	for i, aggregate := range order {
		out[i] = sums[aggregate].close()
	}
	return out
}

type tally struct {
	Summary
	charged, refunded map[string]*sum
	live              map[string]family
}

type sum struct {
	total  big.Rat
	places int
}

func (t *tally) add(e Effect) {
	f := families[e.Kind]
	if f == "" {
		t.Notifications++
		return
	}
	count := map[family]*Count{money: &t.Charges, stock: &t.Holds, transport: &t.Shipments}[f]
	side := t.charged
	if e.Direction == Undo {
		count.Undone++
		delete(t.live, e.Thing)
		side = t.refunded
	} else {
		count.Made++
		t.live[e.Thing] = f
	}
	if amount, err := parseDecimal(e.Amount); f == money && err == nil {
		if side[e.Currency] == nil {
			side[e.Currency] = &sum{}
		}
		s := side[e.Currency]
		s.total.Add(&s.total, amount)
		s.places = max(s.places, placesOf(e.Amount))
	}
}

func (t *tally) close() Summary {
	for _, f := range t.live {
		map[family]*Count{money: &t.Charges, stock: &t.Holds, transport: &t.Shipments}[f].Live++
	}
	currencies := maps.Clone(t.charged)
	maps.Copy(currencies, t.refunded)
	t.Money = []Money{}
	for _, currency := range slices.Sorted(maps.Keys(currencies)) {
		charged, refunded := cmp.Or(t.charged[currency], &sum{}), cmp.Or(t.refunded[currency], &sum{})
		places := max(charged.places, refunded.places)
		net := new(big.Rat).Sub(&charged.total, &refunded.total)
		t.Money = append(t.Money, Money{
			Currency: currency, Charged: charged.total.FloatString(places),
			Refunded: refunded.total.FloatString(places), Net: net.FloatString(places),
		})
	}
	return t.Summary
}

// summaryPage is the body of GET /sim/summary. Next is the since of the page
// that follows; it is absent on the last one.
type summaryPage struct {
	Orders []Summary `json:"orders"`
	Total  int       `json:"total"` // of orders on all pages
	Live   int       `json:"live"`  // of orders with anything live
	Next   int64     `json:"next,omitempty"`
}

func (s *Sim) getSummary(w http.ResponseWriter, r *http.Request) {
	f, ok := readFilter(w, r)
	if !ok {
		return
	}
	var effects []Effect
	since, limit := f.Since, pageSize(f) // of orders here, not of effects
	f.Since, f.Limit = 0, 0
	s.EachEffect(f, func(e Effect) bool {
		effects = append(effects, e)
		return true
	})
	all := Summarize(effects)
	if wantsStream(r) {
		st := newStream(w, 0)
		for i := range all {
			if !st.row(encode(all[i])) {
				return
			}
		}
		st.end()
		return
	}
	page := summaryPage{Total: len(all)}
	for i := range all {
		if all[i].Live() {
			page.Live++
		}
	}
	from := min(int(since), len(all))
	to := min(from+limit, len(all))
	page.Orders = all[from:to]
	if to < len(all) {
		page.Next = int64(to)
	}
	writeJSON(w, http.StatusOK, page)
}

// checkResult is the body of GET /sim/check.
type checkResult struct {
	Effects    int         `json:"effects"`
	Violations []Violation `json:"violations"`
}

func (s *Sim) getCheck(w http.ResponseWriter, _ *http.Request) {
	effects := s.Effects()
	found := Check(effects)
	if found == nil {
		found = []Violation{}
	}
	writeJSON(w, http.StatusOK, checkResult{len(effects), found})
}
