package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Rate is a probability in parts per ten thousand: 0 is never, 10000 is always.
// Its text is an exact decimal such as "0.3" or "0.0005".
type Rate int

const rateOne Rate = 10_000

// ParseRate reads a decimal between 0 and 1 with at most four places.
func ParseRate(text string) (Rate, error) {
	whole, frac, _ := strings.Cut(text, ".")
	bad := fmt.Errorf("rate %q: want a decimal from 0 to 1 with at most 4 places, such as 0.30", text)
	if (whole != "0" && whole != "1") || len(frac) > 4 || strings.HasSuffix(text, ".") {
		return 0, bad
	}
	r := Rate(whole[0]-'0') * rateOne
	unit := rateOne
	for _, c := range frac {
		if c < '0' || c > '9' {
			return 0, bad
		}
		unit /= 10
		r += Rate(c-'0') * unit
	}
	if r > rateOne {
		return 0, bad
	}
	return r, nil
}

// String returns the decimal without trailing zeros.
func (r Rate) String() string {
	text := fmt.Sprintf("%d.%04d", r/rateOne, r%rateOne)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func (r Rate) validate() error {
	if r < 0 || r > rateOne {
		return fmt.Errorf("rate of %d parts per ten thousand: want 0 to 10000", int(r))
	}
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// UnmarshalJSON accepts a string and a number; a number is read as its digits.
func (r *Rate) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		text = string(data)
	}
	return r.UnmarshalText([]byte(text))
}

// hits draws once: the same seed and parts always give the same answer, so a
// run can be repeated whatever the order in which calls arrive.
func (r Rate) hits(seed uint64, parts ...string) bool {
	return r > 0 && Rate(draw(seed, parts...)%uint64(rateOne)) < r
}

// draw hashes the parts to a number: FNV-1a, then a finaliser that spreads the
// change of one input bit over all output bits.
func draw(seed uint64, parts ...string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset) ^ seed
	for _, p := range parts {
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Duration is a [time.Duration] whose JSON is text such as "1.5s".
type Duration time.Duration

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: want a number with a unit, such as 250ms", text)
	}
	*d = Duration(v)
	return nil
}

// Latency is how long a destination takes before it looks at a request: evenly
// spread from Min to Max, or fixed when they are equal. Its text is "5ms" or
// "5ms..20ms".
type Latency struct{ Min, Max time.Duration }

// ParseLatency reads the text form.
func ParseLatency(text string) (Latency, error) {
	low, high, spread := strings.Cut(text, "..")
	if !spread {
		high = low
	}
	var lo, hi Duration
	if lo.UnmarshalText([]byte(low)) != nil || hi.UnmarshalText([]byte(high)) != nil {
		return Latency{}, fmt.Errorf("latency %q: want a duration or a range, such as 5ms or 5ms..20ms", text)
	}
	l := Latency{Min: time.Duration(lo), Max: time.Duration(hi)}
	return l, l.validate()
}

func (l Latency) validate() error {
	if l.Min < 0 || l.Max < l.Min {
		return fmt.Errorf("latency %s: want 0 or more, and the lower bound first", l)
	}
	return nil
}

// String returns the text form.
func (l Latency) String() string {
	if l.Min == l.Max {
		return l.Min.String()
	}
	return l.Min.String() + ".." + l.Max.String()
}

// MarshalText implements [encoding.TextMarshaler].
func (l Latency) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *Latency) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLatency(string(text))
	return err
}

func (l Latency) pick(n uint64) time.Duration {
	if l.Max == l.Min {
		return l.Min
	}
	return l.Min + time.Duration(n%uint64(l.Max-l.Min+1))
}

// Idempotency says how a destination treats a repeated Idempotency-Key. The
// zero value is "on".
type Idempotency struct {
	mode string
	ttl  time.Duration
}

// The modes; [IdempotencyTTL] makes the fourth.
var (
	// IdempotencyOn replays the first processed answer, successes and refusals, for ever.
	IdempotencyOn = Idempotency{}
	// IdempotencyOff ignores the key: a repeated call does its work again.
	IdempotencyOff = Idempotency{mode: "off"}
	// IdempotencySuccessOnly replays successes and processes a refused call again.
	IdempotencySuccessOnly = Idempotency{mode: "success_only"}
)

// IdempotencyTTL replays like "on" until d after the first processed answer.
func IdempotencyTTL(d time.Duration) Idempotency { return Idempotency{ttl: d} }

// String returns "on", "off", "success_only" or the time to live.
func (m Idempotency) String() string {
	switch {
	case m.mode != "":
		return m.mode
	case m.ttl > 0:
		return m.ttl.String()
	}
	return "on"
}

// MarshalText implements [encoding.TextMarshaler].
func (m Idempotency) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Idempotency) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "on":
		*m = IdempotencyOn
	case "off", "success_only":
		*m = Idempotency{mode: s}
	default:
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return fmt.Errorf("idempotency %q: want on, off, success_only or a time to live such as 24h", s)
		}
		*m = IdempotencyTTL(d)
	}
	return nil
}

func (m Idempotency) dedupes() bool { return m.mode != "off" }

// replays reports whether an answer given at the time may be given again now.
func (m Idempotency) replays(refused bool, at, now time.Time) bool {
	switch {
	case m.mode == "off", m.mode == "success_only" && refused:
		return false
	case m.ttl > 0:
		return now.Sub(at) < m.ttl
	}
	return true
}
