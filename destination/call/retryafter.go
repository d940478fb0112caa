package call

import (
	"net/http"
	"strings"
	"time"

	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

// wish is what a reply says about when to come back.
type wish struct {
	// asked is true when it names a time at all, readable or not.
	asked bool
	// wait is the longest of the readable ones; 0 when there is none.
	wait time.Duration
}

// readWish looks into the header, and into the body where the header is
// absent. now is this process's time, for replies that do not tell theirs.
func readWish(h http.Header, body render.Reply, rule spec.RetryAfter, now time.Time) wish {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		// Times in the reply are by the clock that also wrote its date.
		now = date
	}
	var w wish
	for _, value := range h.Values(rule.Header) {
		w.add(value, rule.Format, now)
	}
	if !w.asked && !rule.Body.IsZero() {
		if value, ok := body.Text(rule.Body); ok {
			w.add(value, rule.Format, now)
		}
	}
	return w
}

func (w *wish) add(value string, format spec.WaitFormat, now time.Time) {
	if value = strings.TrimSpace(value); value != "" {
		w.asked = true
		w.wait = max(w.wait, readWait(value, format, now))
	}
}

// bounded applies the rule's fallback and cap. 0 leaves it to the backoff.
func (w wish) bounded(rule spec.RetryAfter) time.Duration {
	wait := w.wait
	if wait <= 0 {
		wait = rule.Fallback
	}
	if rule.Cap > 0 {
		wait = min(wait, rule.Cap)
	}
	return wait
}

// readWait gives the time from now until value, 0 for anything that is not in
// the format or not after now.
func readWait(value string, format spec.WaitFormat, now time.Time) time.Duration {
	switch format {
	case spec.WaitSeconds:
		return units(value, time.Second)
	case spec.WaitMilliseconds:
		return units(value, time.Millisecond)
	case spec.WaitUnix:
		return sinceEpoch(value, time.Second, now)
	case spec.WaitUnixMillis:
		return sinceEpoch(value, time.Millisecond, now)
	case spec.WaitHTTPDate:
		return untilDate(value, now)
	case spec.WaitISO8601:
		return untilISO(value, now)
	}
	// A whole number is seconds, as HTTP has it; the others cannot be mistaken
	// for one another.
	return max(units(value, time.Second), untilDate(value, now), untilISO(value, now))
}

const longest = time.Duration(1<<63 - 1)

// units reads a whole number of units. Anything else is 0: a sign, a
// fraction, a word. A number too long for a duration is the longest one.
func units(text string, unit time.Duration) time.Duration {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0
	}
	n := time.Duration(0)
	for _, digit := range []byte(text) {
		next := time.Duration(digit - '0')
		if n > (longest/unit-next)/10 {
			return longest
		}
		n = n*10 + next
	}
	return n * unit
}

// sinceEpoch reads a whole number of units since 1970.
func sinceEpoch(text string, unit time.Duration, now time.Time) time.Duration {
	at := units(text, unit)
	switch {
	case at == 0:
		return 0
	case at == longest:
		return longest
	}
	return time.Unix(0, 0).Add(at).Sub(now)
}

// untilDate reads the three forms of an HTTP date.
func untilDate(text string, now time.Time) time.Duration {
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return at.Sub(now)
}

// untilISO reads a time with its zone; a time without one could be any.
func untilISO(text string, now time.Time) time.Duration {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "20060102T150405.999999999Z07:00", "20060102T150405.999999999Z0700"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Sub(now)
		}
	}
	return 0
}
