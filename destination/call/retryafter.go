package call

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ebbline/ebb/destination/spec"
)

// asksToWait reports whether the reply names a time to come back at all.
func asksToWait(h http.Header, rule spec.RetryAfter) bool {
	for _, value := range h.Values(rule.Header) {
		if strings.TrimSpace(value) != "" {
			return true
		}
	}
	return false
}

// retryAfter reads how long to wait: the longest of the valid values, else
// the fallback, and never more than the cap. 0 leaves it to the backoff.
func retryAfter(h http.Header, rule spec.RetryAfter) time.Duration {
	wait := time.Duration(0)
	for _, value := range h.Values(rule.Header) {
		wait = max(wait, wholeSeconds(strings.TrimSpace(value)))
	}
	if wait == 0 {
		wait = rule.Fallback
	}
	if rule.Cap > 0 {
		wait = min(wait, rule.Cap)
	}
	return wait
}

// wholeSeconds reads a positive number of seconds. Anything else is 0: a
// sign, a fraction, a date, a word. Numbers too long for a duration are the
// longest one.
func wholeSeconds(text string) time.Duration {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0
	}
	const longest = int64(1<<63-1) / int64(time.Second)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds > longest {
		seconds = longest
	}
	return time.Duration(seconds) * time.Second
}
