//go:build !race

package saga_test

import (
	"testing"

	"github.com/ebbline/ebb/journal/saga"
)

// orders is e1 (create: A, and B after A) and e2 (change: A), with a cancel of both at any moment or never.
func orders() bounds {
	return bounds{
		plans:  [][]int{{0, 1}, {0}},
		roles:  []saga.Role{saga.Create, saga.Change},
		rules:  []saga.Rules{after(), after("A")},
		cancel: 99,
	}
}

func with(b bounds, change func(*bounds)) bounds {
	change(&b)
	return b
}

const stateLimit = 20_000_000

var runs = map[string]bounds{
	"faults 1":                     with(orders(), func(b *bounds) { b.faults = 1 }),
	"faults 2":                     with(orders(), func(b *bounds) { b.faults = 2 }),
	"faults 3":                     with(orders(), func(b *bounds) { b.faults = 3 }),
	"faults 1, messages":           with(orders(), func(b *bounds) { b.faults, b.messages = 1, true }),
	"faults 2, messages":           with(orders(), func(b *bounds) { b.faults, b.messages = 2, true }),
	"faults 1, grown, park, retry": with(orders(), func(b *bounds) { b.faults, b.grown, b.parks, b.retries = 1, true, 1, 1 }),
	"faults 2, grown, park, retry": with(orders(), func(b *bounds) { b.faults, b.grown, b.parks, b.retries = 2, true, 1, 1 }),
	"faults 2, parks, one event":   with(orders(), func(b *bounds) { b.faults, b.parks, b.retries, b.plans = 2, 2, 2, b.plans[:1] }),
	"faults 1, B never reads":      with(orders(), func(b *bounds) { b.faults, b.never[1] = 1, true }),
	"faults 1, cancel between":     with(orders(), func(b *bounds) { b.faults, b.cancel, b.grown = 1, 15, true }),
	"faults 2, success only":       with(orders(), func(b *bounds) { b.faults = 2; idem(b, saga.SuccessOnly) }),
	"faults 2, not idempotent":     with(orders(), func(b *bounds) { b.faults, b.parks, b.retries = 2, 1, 2; idem(b, saga.NotIdempotent) }),
	"both at A and B, faults 1":    with(orders(), func(b *bounds) { b.faults, b.plans = 1, [][]int{{0, 1}, {0, 1}} }),
	"both at A and B, faults 2":    with(orders(), func(b *bounds) { b.faults, b.plans = 2, [][]int{{0, 1}, {0, 1}} }),
	"e2 at B only, C too, faults 1": with(orders(), func(b *bounds) {
		b.faults, b.plans, b.rules = 1, [][]int{{0, 2}, {1}}, append(b.rules, after())
		b.parks = 1
	}),
	"three independent, faults 1, park": with(orders(), func(b *bounds) {
		b.faults, b.plans, b.rules = 1, [][]int{{0, 1, 2}}, append(b.rules, after())
		b.parks = 1
	}),
	"exhausted, faults 1":               with(orders(), func(b *bounds) { b.faults, b.throttles = 1, 2; tired(b) }),
	"exhausted, success only, faults 2": with(orders(), func(b *bounds) { b.faults, b.throttles = 2, 1; tired(b); idem(b, saga.SuccessOnly) }),
	"outage, faults 1": with(orders(), func(b *bounds) {
		b.faults, b.outages, b.impatient = 1, 2, true
		b.rules[1].OnExhausted = saga.ExhaustedCompensates
	}),
	"late C": with(orders(), func(b *bounds) {
		b.plans, b.rules, b.late[2] = [][]int{{0, 2}, {0, 2}}, []saga.Rules{after(), after(), after("A")}, true
		b.faults, b.throttles = 1, 1
		tired(b)
	}),
	"late C, one event": with(orders(), func(b *bounds) {
		b.plans, b.rules, b.late[2] = [][]int{{0, 2}}, []saga.Rules{after(), after(), after("A")}, true
		b.faults, b.throttles = 1, 1
		tired(b)
	}),
	"late A": with(orders(), func(b *bounds) {
		b.plans, b.rules, b.late[0] = [][]int{{0, 1}}, []saga.Rules{after(), after("A")}, true
		b.faults, b.throttles = 1, 1
		tired(b)
	}),
	"three events, faults 0": with(orders(), func(b *bounds) {
		b.plans, b.rules, b.roles = [][]int{{0, 1}, {0, 2}, {1, 2}}, []saga.Rules{after(), after("A"), after()}, append(b.roles, saga.Change)
	}),
	"three events, faults 1": with(orders(), func(b *bounds) {
		b.plans, b.rules, b.roles = [][]int{{0, 1}, {0}, {0}}, []saga.Rules{after(), after("A"), after()}, append(b.roles, saga.Change)
		b.faults = 1
	}),
	"both at A and B, faults 1, grown, park": with(orders(), func(b *bounds) {
		b.faults, b.plans = 1, [][]int{{0, 1}, {0, 1}}
		b.grown, b.parks, b.retries = true, 1, 1
	}),
	"ignored, parked refusals, faults 1": with(orders(), func(b *bounds) {
		b.faults, b.retries, b.rules[0].OnRefused, b.rules[1].OnRefused = 1, 1, saga.RefusalIgnored, saga.RefusalParks
	}),
}

func tired(b *bounds) {
	for d := range b.rules {
		b.rules[d].MaxAttempts, b.rules[d].MaxUndoAttempts = 1, 1
	}
}

func idem(b *bounds, i saga.Idempotency) {
	for d := range b.rules {
		b.rules[d].Idempotency = i
	}
}

func TestTry(t *testing.T) {
	for name, b := range runs {
		t.Run(name, func(t *testing.T) {
			out := explore(&b, 3_000_000)
			t.Log(name, out, out.stopped)
		})
	}
}
