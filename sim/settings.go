package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The simulated destinations, by the names that consumers use for them.
const (
	Inventory     = "inventory"
	FraudCheck    = "fraudCheck"
	Shipping      = "shipping"
	Billing       = "billing"
	Notifications = "notifications"
)

// Destinations lists the simulated destinations in the order of an order's way.
func Destinations() []string {
	return []string{Inventory, FraudCheck, Shipping, Billing, Notifications}
}

// The keys of [Settings.Rates], one per kind of endpoint.
const (
	RateReserve             = "inventory.reserve"
	RateRelease             = "inventory.release"
	RateFraudCheck          = "fraudCheck.check"
	RateDomesticCreate      = "shipping.domestic.create"
	RateDomesticCancel      = "shipping.domestic.cancel"
	RateInternationalCreate = "shipping.international.create"
	RateInternationalCancel = "shipping.international.cancel"
	RateCharge              = "billing.charge"
	RateRefund              = "billing.refund"
	RateHighValue           = "highValue.process"
	RateHighValueCancel     = "highValue.cancel"
	RateNotification        = "notifications.send"
)

// everyKey in a map of [Settings] stands for all its keys.
const everyKey = "*"

const markerPrefix = "refuse-"

// defaultSeed refuses five of the orders 1 to 20, at least one at every
// destination of an order's way, so that a demonstration shows unwinding soon.
const defaultSeed uint64 = 557

// Settings is everything about the destinations' behaviour that can change
// while they run. In each map the key "*" sets all keys at once, before the
// others are applied; an absent key keeps its value.
type Settings struct {
	// Rates is the chance that a call ends in 503 (429 for the fraud check)
	// without being processed, by rate key. Such an answer is not remembered.
	Rates map[string]Rate `json:"rates,omitempty"`
	// Refusals is the chance that a destination refuses an order for good
	// (422 with a reason), by destination.
	Refusals map[string]Rate `json:"refusals,omitempty"`
	// Latency is the time before a request is looked at, by destination.
	Latency map[string]Latency `json:"latency,omitempty"`
	// Idempotency says what a repeated key does, by destination.
	Idempotency map[string]Idempotency `json:"idempotency,omitempty"`
	// Refuse lists aggregate ids that a destination always refuses, by
	// destination. A list replaces the one before.
	Refuse map[string][]string `json:"refuse,omitempty"`
}

// DefaultSettings returns the shipped behaviour: small random failures
// everywhere, and refusals for roughly one order in four.
func DefaultSettings() Settings {
	s := Settings{
		Rates: map[string]Rate{
			RateReserve: 500, RateRelease: 1000,
			RateFraudCheck:     500,
			RateDomesticCreate: 500, RateDomesticCancel: 1000,
			RateInternationalCreate: 1000, RateInternationalCancel: 1000,
			RateCharge: 3000, RateRefund: 1000,
			RateHighValue: 2000, RateHighValueCancel: 1000,
			RateNotification: 0,
		},
		Refusals: map[string]Rate{Inventory: 500, FraudCheck: 500, Shipping: 500, Billing: 1000, Notifications: 0},
		Latency:  map[string]Latency{}, Idempotency: map[string]Idempotency{}, Refuse: map[string][]string{},
	}
	for _, d := range Destinations() {
		s.Latency[d], s.Idempotency[d], s.Refuse[d] = Latency{}, IdempotencyOn, []string{}
	}
	return s
}

// Quiet returns settings that turn every random failure and refusal off.
func Quiet() Settings {
	return Settings{Rates: map[string]Rate{everyKey: 0}, Refusals: map[string]Rate{everyKey: 0}}
}

// merged returns s changed by the parts that change names.
func (s Settings) merged(change Settings) Settings {
	return Settings{
		Rates:       mergeMap(s.Rates, change.Rates),
		Refusals:    mergeMap(s.Refusals, change.Refusals),
		Latency:     mergeMap(s.Latency, change.Latency),
		Idempotency: mergeMap(s.Idempotency, change.Idempotency),
		Refuse:      mergeMap(s.Refuse, change.Refuse),
	}
}

func mergeMap[V any](base, change map[string]V) map[string]V {
	out := maps.Clone(base)
	if v, ok := change[everyKey]; ok {
		for k := range out {
			out[k] = v
		}
	}
	for k, v := range change {
		if k != everyKey {
			out[k] = v
		}
	}
	return out
}

func (s Settings) validate() error {
	known := DefaultSettings()
	return errors.Join(
		checkMap("rates", s.Rates, known.Rates, Rate.validate),
		checkMap("refusals", s.Refusals, known.Refusals, Rate.validate),
		checkMap("latency", s.Latency, known.Latency, Latency.validate),
		checkMap("idempotency", s.Idempotency, known.Idempotency, func(Idempotency) error { return nil }),
		checkMap("refuse", s.Refuse, known.Refuse, func([]string) error { return nil }),
	)
}

func checkMap[V, K any](name string, got map[string]V, known map[string]K, check func(V) error) error {
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := known[key]; !ok && key != everyKey {
			problems = append(problems, fmt.Errorf("%s: unknown key %q; known are *, %s",
				name, key, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
			continue
		}
		if err := check(got[key]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", name, key, err))
		}
	}
	return errors.Join(problems...)
}

// marker is the text in a call's body, or in its aggregate id, that makes a
// destination refuse the order. Any call of the order may carry it.
func marker(destination string) string { return markerPrefix + destination }

func isDestination(name string) bool { return slices.Contains(Destinations(), name) }
