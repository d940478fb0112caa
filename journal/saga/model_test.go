//go:build !race

package saga_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// The exhaustive runs drive this package's transitions through every history within their bounds: every interleaving of readers,
// workers, the compensator, the network and the API, with a cancel at any moment or never. What is checked in every state and at
// every rest is in checks_test.go. They are left out under the race detector: there is one goroutine, and it would take minutes.

// stateLimit stops a run that has grown by mistake; no run comes near it.
const stateLimit = 5_000_000

// shortLimit is how many states a run looks at under -short: breadth first, so all short histories.
const shortLimit = 20_000

// orders is e1 (create: A, and B after A) and e2 (change: A), with a cancel of both at any moment or never.
func orders(changes ...func(*bounds)) bounds {
	b := bounds{
		plans:  [][]int{{0, 1}, {0}},
		roles:  []saga.Role{saga.Create, saga.Change},
		rules:  []saga.Rules{after(), after("A")},
		cancel: 99,
	}
	for _, change := range changes {
		change(&b)
	}
	return b
}

// plans sets what events go where; events after the first are changes.
func plans(rules []saga.Rules, plans ...[]int) func(*bounds) {
	return func(b *bounds) {
		b.rules, b.plans, b.roles = rules, plans, []saga.Role{saga.Create}
		for len(b.roles) < len(plans) {
			b.roles = append(b.roles, saga.Change)
		}
	}
}

func faults(n int) func(*bounds)         { return func(b *bounds) { b.faults = n } }
func grown(b *bounds)                    { b.grown = true }
func messages(b *bounds)                 { b.messages = true }
func cancelAt(v int64) func(*bounds)     { return func(b *bounds) { b.cancel = v } }
func outcomes(b *bounds)                 { b.outcomes = true }
func parks(n, retries int) func(*bounds) { return func(b *bounds) { b.parks, b.retries = n, retries } }

// lookup lets every destination be asked.
func lookup(b *bounds) { b.each(func(r *saga.Rules) { r.Lookup = true }) }

func looks(n int) func(*bounds) { return func(b *bounds) { b.looks = n } }

func promises(i saga.Idempotency) func(*bounds) {
	return func(b *bounds) { b.each(func(r *saga.Rules) { r.Idempotency = i }) }
}

func onRefused(dest int, o saga.OnRefused) func(*bounds) {
	return func(b *bounds) { b.rules[dest].OnRefused = o }
}

func ordering(o saga.Ordering) func(*bounds) {
	return func(b *bounds) { b.each(func(r *saga.Rules) { r.Ordering = o }) }
}

// oneAttempt uses retries up at once.
func oneAttempt(b *bounds) {
	b.each(func(r *saga.Rules) { r.MaxAttempts, r.MaxUndoAttempts = 1, 1 })
}

func (b *bounds) each(f func(*saga.Rules)) {
	for d := range b.rules {
		f(&b.rules[d])
	}
}

// check explores the run and requires that it ends without a violation.
func check(t *testing.T, b bounds) {
	t.Helper()
	limit := stateLimit
	if testing.Short() {
		limit = shortLimit
	}
	out := explore(&b, limit)
	t.Log(out)
	require.Empty(t, out.why)
	require.Equal(t, testing.Short() && out.states > limit, out.stopped, "the run is larger than its limit")
}

func checkAll(t *testing.T, runs map[string]bounds) {
	t.Helper()
	for name, b := range runs {
		t.Run(name, func(t *testing.T) { check(t, b) })
	}
}

func TestG09EveryHistoryEndsOrAsksForAnOperator(t *testing.T) {
	t.Parallel()
	ab := []saga.Rules{after(), after("A")}
	checkAll(t, map[string]bounds{
		"2 faults":                  orders(faults(2)),
		"3 faults":                  orders(faults(3)),
		"2 faults, messages":        orders(faults(2), messages),
		"2 faults, both at A and B": orders(faults(2), plans(ab, []int{0, 1}, []int{0, 1})),
		"2 faults, one event, two steps park, are retried": orders(faults(2), parks(2, 2), plans(ab, []int{0, 1})),
		"1 fault, three events":                            orders(faults(1), plans(ab, []int{0, 1}, []int{0}, []int{0})),
		"1 fault, cancel of e1 only":                       orders(faults(1), grown, cancelAt(15)),
		"1 fault, refusals are ignored or park":            orders(faults(1), parks(0, 1), onRefused(0, saga.RefusalIgnored), onRefused(1, saga.RefusalParks)),
		"1 fault, B never reads":                           orders(faults(1), func(b *bounds) { b.never[1] = true }),
		"2 faults, refusals not remembered":                orders(faults(2), promises(saga.SuccessOnly)),
	})
}

func TestG08EventsReachADestinationInOrder(t *testing.T) {
	t.Parallel()
	checkAll(t, map[string]bounds{
		"2 faults, grown, a step parks, is retried": orders(faults(2), grown, parks(1, 1)),
		"1 fault, grown, both at A and B, a step parks, is retried": orders(faults(1), grown, parks(1, 1),
			plans([]saga.Rules{after(), after("A")}, []int{0, 1}, []int{0, 1})),
		"1 fault, grown, parked steps are passed, are retried": orders(faults(1), grown, parks(1, 1), ordering(saga.OrderPass)),
		"1 fault, grown, no order":                             orders(faults(1), grown, parks(1, 1), ordering(saga.OrderNone)),
		"a late step is passed, is retried": orders(parks(2, 2),
			plans([]saga.Rules{after(), after(), after("A")}, []int{0, 2}, []int{0, 2}), ordering(saga.OrderPass),
			func(b *bounds) { b.late[2] = true }),
	})
}

func TestG07UndoRunsInReverse(t *testing.T) {
	t.Parallel()
	checkAll(t, map[string]bounds{
		"1 fault, three destinations, two independent, a step parks": orders(faults(1), parks(1, 1),
			plans([]saga.Rules{after(), after("A"), after()}, []int{0, 1, 2})),
		"1 fault, e2 comes after e1 at another destination, a step parks": orders(faults(1), parks(1, 0),
			plans([]saga.Rules{after(), after("A"), after()}, []int{0, 2}, []int{1})),
		"a chain over three events, and one beside it, a step parks": orders(parks(1, 0), func(b *bounds) { b.answers = onlyYes },
			plans([]saga.Rules{after(), after("A"), after("B"), after()}, []int{0, 3}, []int{0, 1}, []int{2})),
		"three events over three destinations": orders(
			plans([]saga.Rules{after(), after("A"), after()}, []int{0, 1}, []int{0, 2}, []int{1, 2})),
	})
}

// A destination that can be asked is asked, and nothing parks for want of an answer.
func TestG03LookupsFindOut(t *testing.T) {
	t.Parallel()
	ab := []saga.Rules{after(), after("A")}
	checkAll(t, map[string]bounds{
		"2 faults, not idempotent":                    orders(faults(2), lookup, promises(saga.NotIdempotent)),
		"3 faults, not idempotent, one event":         orders(faults(3), lookup, promises(saga.NotIdempotent), plans(ab, []int{0, 1})),
		"2 faults, refusals not remembered":           orders(faults(2), lookup, promises(saga.SuccessOnly)),
		"2 faults, one attempt, a step parks, a look": orders(faults(2), oneAttempt, parks(1, 1), looks(1), lookup, plans(ab, []int{0, 1})),
		"2 faults, forgotten keys":                    orders(faults(2), lookup, func(b *bounds) { b.forgetful = true }),
	})
}

// What an operator has seen, done by hand or waived settles a step as an answer would, and no late news breaks that.
func TestG09OperatorsSettleWhatIsStuck(t *testing.T) {
	t.Parallel()
	ab := []saga.Rules{after(), after("A")}
	checkAll(t, map[string]bounds{
		"2 faults, one look":                      orders(faults(2), looks(1)),
		"1 fault, a step parks, two looks":        orders(faults(1), parks(1, 1), looks(2), plans(ab, []int{0, 1})),
		"2 faults, not idempotent, two looks":     orders(faults(2), looks(2), promises(saga.NotIdempotent), plans(ab, []int{0, 1})),
		"1 fault, grown, passed, a look":          orders(faults(1), grown, parks(1, 0), looks(1), ordering(saga.OrderPass)),
		"B never reads, a look":                   orders(looks(1), func(b *bounds) { b.never[1] = true }),
		"1 fault, an operator unwinds, a look":    orders(faults(1), looks(1), plans(ab, []int{0, 1}), func(b *bounds) { b.reversals = 1 }),
		"an operator unwinds, two events, a look": orders(looks(1), func(b *bounds) { b.reversals = 2 }),
	})
}

// At a destination that does the work for every request, a step that may have happened parks, and nothing is done twice.
func TestG03NotIdempotentIsNeverDoubled(t *testing.T) {
	t.Parallel()
	check(t, orders(faults(2), parks(1, 2), promises(saga.NotIdempotent)))
}

// The same holds once a destination has forgotten its keys.
func TestG03ForgottenKeysAreNotSentAgain(t *testing.T) {
	t.Parallel()
	check(t, orders(faults(2), parks(0, 1), func(b *bounds) { b.forgetful = true }))
}

func TestG10OutagesAndUsedUpRetries(t *testing.T) {
	t.Parallel()
	exhausts := func(b *bounds) { b.rules[1].OnExhausted = saga.ExhaustedCompensates }
	checkAll(t, map[string]bounds{
		"1 fault, 2 outages, patience runs out": orders(faults(1), exhausts, func(b *bounds) { b.outages, b.impatient = 2, true }),
		"1 fault, 2 throttled, one attempt":     orders(faults(1), oneAttempt, func(b *bounds) { b.throttles = 2 }),
		"2 faults, 1 throttled, one attempt, refusals not remembered": orders(faults(2), oneAttempt, promises(saga.SuccessOnly),
			func(b *bounds) { b.throttles = 1 }),
	})
}

func TestG09LateSteps(t *testing.T) {
	t.Parallel()
	late := func(d int) func(*bounds) { return func(b *bounds) { b.late[d], b.throttles = true, 1 } }
	checkAll(t, map[string]bounds{
		"C joins late, two events":  orders(faults(1), plans([]saga.Rules{after(), after(), after("A")}, []int{0, 2}, []int{0, 2}), late(2), oneAttempt),
		"A joins late, B was first": orders(faults(1), plans([]saga.Rules{after(), after("A")}, []int{0, 1}), late(0), oneAttempt),
	})
}

// Each rule is needed: without it, the same world shows a wrong end or a wrong order of effects, judged from outside alone.
func TestMutationsAreCaught(t *testing.T) {
	t.Parallel()
	independent := plans([]saga.Rules{after(), after()}, []int{0, 1})
	worlds := map[string]struct {
		mutation saga.Mutation
		world    bounds
	}{
		"skipFence":     {saga.SkipFence, orders(faults(2), grown)},
		"skipMaybe":     {saga.SkipMaybe, orders(faults(2), grown)},
		"skipAdvance":   {saga.SkipAdvance, orders(faults(2), grown)},
		"skipRecheck":   {saga.SkipRecheck, orders(faults(2), grown)},
		"skipTombstone": {saga.SkipTombstone, orders(faults(2), grown)},
		"skipScope":     {saga.SkipScope, orders(faults(2), grown)},
		"skipExpected":  {saga.SkipExpected, orders(faults(2), grown)},
		"skipReverse":   {saga.SkipReverse, orders(faults(2), independent)},
		"skipAwait":     {saga.SkipAwait, orders(faults(2), grown)},
		"skipConfirm":   {saga.SkipConfirm, orders(faults(2), promises(saga.SuccessOnly))},
		"skipSettle":    {saga.SkipSettle, orders(faults(2), lookup, promises(saga.NotIdempotent))},
	}
	for name, m := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := m.world
			outcomes(&b)
			b.mutation = m.mutation
			out := explore(&b, stateLimit)
			t.Log(out)
			require.NotEmpty(t, out.why, "the model does not notice that the rule is gone")
		})
	}
	for name, b := range map[string]bounds{
		"nothing left out":                          orders(outcomes, faults(2), grown),
		"nothing left out, independent":             orders(outcomes, faults(2), independent),
		"nothing left out, refusals not remembered": orders(outcomes, faults(2), promises(saga.SuccessOnly)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, b)
		})
	}
}
