package sim

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func do(kind Kind, order, thing, amount string) Effect {
	return Effect{Direction: Do, Kind: kind, Aggregate: order, Thing: thing, Amount: amount, Currency: "USD", Destination: "d"}
}

func undo(kind Kind, order, thing, amount string) Effect {
	e := do(kind, order, thing, amount)
	e.Direction = Undo
	return e
}

func numbered(effects ...Effect) []Effect {
	for i := range effects {
		effects[i].Seq = int64(i + 1)
	}
	return effects
}

func rules(vs []Violation) []Rule {
	out := []Rule{}
	for _, v := range vs {
		out = append(out, v.Rule)
	}
	return out
}

func TestCheckFindsEachPlantedViolation(t *testing.T) {
	t.Parallel()
	keyed := func(e Effect, key string) Effect { e.Key = key; return e }
	by := func(e Effect, caller string) Effect { e.Caller = caller; return e }
	in := func(e Effect, currency string) Effect { e.Currency = currency; return e }
	for name, tt := range map[string]struct {
		effects []Effect
		want    []Rule
	}{
		"nothing":         {nil, []Rule{}},
		"done":            {numbered(do(StockHold, "1", "h", ""), do(Shipment, "1", "s", ""), do(Charge, "1", "c", "10.50")), []Rule{}},
		"unwound":         {numbered(do(StockHold, "1", "h", ""), do(Charge, "1", "c", "10.5"), undo(Refund, "1", "c", "10.50"), undo(StockRelease, "1", "h", "")), []Rule{}},
		"charged again":   {numbered(do(Charge, "1", "c", "1"), undo(Refund, "1", "c", "1"), do(HighValue, "1", "v", "1")), []Rule{}},
		"two orders":      {numbered(do(Charge, "1", "c", "1"), do(Charge, "2", "d", "1")), []Rule{}},
		"messages":        {numbered(do(Notification, "1", "a", ""), do(Notification, "1", "b", "")), []Rule{}},
		"double charge":   {numbered(do(Charge, "1", "c", "1"), do(Charge, "1", "d", "1")), []Rule{TwoLive}},
		"charge and high": {numbered(do(Charge, "1", "c", "1"), do(HighValue, "1", "v", "1")), []Rule{TwoLive}},
		"double hold":     {numbered(do(StockHold, "1", "a", ""), do(StockHold, "1", "b", "")), []Rule{TwoLive}},
		"double shipment": {numbered(do(Shipment, "1", "a", ""), do(Shipment, "1", "b", "")), []Rule{TwoLive}},
		"refund first":    {numbered(undo(Refund, "1", "c", "1"), do(Charge, "1", "c", "1")), []Rule{UndoBeforeDo}},
		"wrong undo":      {numbered(do(Charge, "1", "c", "1"), undo(StockRelease, "1", "c", "1")), []Rule{UndoBeforeDo}},
		"double refund":   {numbered(do(Charge, "1", "c", "1"), undo(Refund, "1", "c", "1"), undo(Refund, "1", "c", "1")), []Rule{UndoneTwice}},
		"double release":  {numbered(do(StockHold, "1", "h", ""), undo(StockRelease, "1", "h", ""), undo(StockRelease, "1", "h", "")), []Rule{UndoneTwice}},
		"partial refund":  {numbered(do(Charge, "1", "c", "100"), undo(Refund, "1", "c", "40")), []Rule{WrongAmount}},
		"one cent more":   {numbered(do(Charge, "1", "c", "90071992547409.93"), undo(Refund, "1", "c", "90071992547409.94")), []Rule{WrongAmount}},
		"no amount":       {numbered(do(Charge, "1", "c", "")), []Rule{WrongAmount}},
		"other currency":  {numbered(do(Charge, "1", "c", "1"), in(undo(Refund, "1", "c", "1"), "EUR")), []Rule{WrongCurrency}},
		"another's":       {numbered(do(Charge, "1", "c", "1"), by(undo(Refund, "1", "c", "1"), "2")), []Rule{WrongOrder}},
		"key twice":       {numbered(keyed(do(Notification, "1", "a", ""), "k"), keyed(do(Notification, "1", "b", ""), "k")), []Rule{RepeatedKey}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := Check(tt.effects)
			require.Equal(t, tt.want, rules(found), "%v", found)
			slices.Reverse(tt.effects)
			require.Equal(t, tt.want, rules(Check(tt.effects)), "the order given does not matter")
		})
	}
}

func TestCheckReverse(t *testing.T) {
	t.Parallel()
	hold, ship, pay := do(StockHold, "1", "h", ""), do(Shipment, "1", "s", ""), do(Charge, "1", "c", "1")
	unhold, unship, unpay := undo(StockRelease, "1", "h", ""), undo(ShipmentCancel, "1", "s", ""), undo(Refund, "1", "c", "1")
	require.Empty(t, CheckReverse(numbered(hold, ship, pay, unpay, unship, unhold)))
	require.Empty(t, CheckReverse(numbered(hold, ship, unship, pay, unpay, unhold)))
	require.Equal(t, []Rule{NotReverse}, rules(CheckReverse(numbered(hold, ship, pay, unpay, unhold, unship))))
	require.Equal(t, []Rule{NotReverse, NotReverse}, rules(CheckReverse(numbered(hold, ship, pay, unhold, unship, unpay))))
}

func TestCheckAmounts(t *testing.T) {
	t.Parallel()
	effects := numbered(do(Charge, "1", "c", "10.50"), do(Charge, "2", "d", "10.51"), do(Charge, "3", "e", "9"))
	found := CheckAmounts(effects, map[string]string{"1": "10.5", "2": "10.50", "4": "1"})
	require.Equal(t, []Rule{WrongAmount}, rules(found))
	require.Equal(t, "2", found[0].Aggregate)
	require.Contains(t, found[0].String(), "order 2")
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	sums := Summarize(numbered(
		do(StockHold, "1", "h", ""), do(Charge, "1", "c", "9007199254740993.10"), do(Notification, "1", "n", ""),
		do(Charge, "2", "d", "5800"), undo(Refund, "2", "d", "0.5"), do(Charge, "2", "e", "1e2"),
	))
	require.Equal(t, `[{"aggregate":"1","money":[{"currency":"USD","charged":"9007199254740993.10","refunded":"0.00","net":"9007199254740993.10"}],`+
		`"charges":{"made":1,"undone":0,"live":1},"holds":{"made":1,"undone":0,"live":1},"shipments":{"made":0,"undone":0,"live":0},"notifications":1},`+
		`{"aggregate":"2","money":[{"currency":"USD","charged":"5900.0","refunded":"0.5","net":"5899.5"}],`+
		`"charges":{"made":2,"undone":1,"live":1},"holds":{"made":0,"undone":0,"live":0},"shipments":{"made":0,"undone":0,"live":0},"notifications":0}]`,
		compact(t, sums))
	require.True(t, sums[0].Live())
}

// Any well-behaved history is accepted, and any one planted fault is found.
func TestCheckProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var effects []Effect
		for _, order := range []string{"1", "2", "3"} {
			n := rapid.IntRange(0, 3).Draw(t, "steps")
			dos := []Effect{do(StockHold, order, "h"+order, ""), do(Shipment, order, "s"+order, ""), do(Charge, order, "c"+order, "1.10")}[:n]
			effects = append(effects, dos...)
			if rapid.Bool().Draw(t, "unwind") {
				for i := n - 1; i >= 0; i-- {
					effects = append(effects, undo(undoKinds[dos[i].Kind], order, dos[i].Thing, dos[i].Amount))
				}
			}
		}
		numbered(effects...)
		require.Empty(t, Check(effects))
		require.Empty(t, CheckReverse(effects))
		if len(effects) == 0 {
			return
		}
		again := effects[rapid.IntRange(0, len(effects)-1).Draw(t, "again")]
		planted := numbered(append(slices.Clone(effects), again)...)
		undoneLater := again.Direction == Do && slices.ContainsFunc(effects, func(e Effect) bool {
			return e.Direction == Undo && e.Thing == again.Thing
		})
		if undoneLater {
			require.Empty(t, Check(planted), "done again after it was undone")
			return
		}
		require.NotEmpty(t, Check(planted))
	})
}
