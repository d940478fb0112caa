package field

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestF41 is "Retry-After". What is valid is obeyed, by the clock of who wrote it; what is not leaves it to the own backoff, which is
// never zero; what is too long is capped, and holds nobody else back.
func TestF41(t *testing.T) {
	t.Parallel()
	const date = "Mon, 30 Nov 2026 10:00:00 GMT" // of the replies: a clock far from ours, so that only a difference can mean anything
	long := map[string]string{                   // five minutes each, or the cap of ten
		"seconds": "300", "rfc1123": "Mon, 30 Nov 2026 10:05:00 GMT", "rfc850": "Monday, 30-Nov-26 10:05:00 GMT", "asctime": "Mon Nov 30 10:05:00 2026",
		"iso": "2026-11-30T15:35:00+05:30", "day": "86400", "decades": "1790000000", "endless": "99999999999999999999",
	}
	invalid := map[string]string{
		"zero": "0", "negative": "-5", "fraction": "1.5", "empty": "", "soon": "soon", "past": "Mon, 30 Nov 2026 09:00:00 GMT", "hex": "0x10",
	}
	w := startWorld(t, func(c seen) answer {
		name, status, _ := strings.Cut(c.Aggregate, "-")
		code := map[string]int{"429": 429, "503": 503}[status]
		value, known := long[name]
		if !known {
			value, known = invalid[name]
		}
		switch {
		case name == "body" && c.Nth == 1:
			return answer{status: 429, header: http.Header{"Date": {date}}, body: `{"error":{"retryAt":1796033100000}}`}
		case name == "twice" && c.Nth == 1:
			return answer{status: code, header: http.Header{"Date": {date}, "retry-after": {"1", "300"}}}
		case known && c.Nth == 1:
			return answer{status: code, header: http.Header{"Date": {date}, "retry-after": {value}}}
		}
		return says(200, `{}`)
	})
	s := w.pipeline(t, map[string]string{
		"limited":     head("limited", "Limited", "request: { url: /limited }\nrevert: none\n"),
		"unavailable": head("unavailable", "Unavailable", "request: { url: /limited }\nrevert: none\n"),
		"inbody": strings.Replace(head("inbody", "InBody", "request: { url: /limited }\nrevert: none\n"),
			"retry_after: { cap: 10m }", "retry_after: { header: X-None, body: $.error.retryAt, format: unix_ms, cap: 10m }", 1),
	})
	ids := map[string]string{"body": s.event("body", "InBody", `{}`)}
	for name := range long {
		ids[name+"-429"] = s.event(name+"-429", "Limited", `{}`)
	}
	ids["twice-429"] = s.event("twice-429", "Limited", `{}`)
	for name := range invalid {
		ids[name+"-429"] = s.event(name+"-429", "Limited", `{}`)
	}
	// Of these only two: three in a row would be an outage of the destination.
	for _, name := range []string{"iso-503", "empty-503"} {
		ids[name] = s.event(name, "Unavailable", `{}`)
	}
	for key, id := range ids {
		name, status, _ := strings.Cut(key, "-")
		if value, ok := invalid[name]; ok {
			destination := map[string]string{"429": "limited", "503": "unavailable"}[status]
			s.comesTo(id, "COMPLETED") // in spite of those before it in the partition that wait for minutes
			require.Len(t, w.calls(key, destination), 2, name)
			class := "RETRY"
			if status == "503" && value == "" {
				class = "UNKNOWN" // a bare 503 promises nothing
			}
			require.Equal(t, class+" "+status+", SUCCEEDED 200", s.classes(id, destination), key)
			continue
		}
		s.until(func() (bool, string) {
			steps := s.stepsOf(id)
			return s.text(`SELECT count(*)::text FROM ebb.calls WHERE saga_id = $1::uuid`, id) == "1", steps
		})
		// The wait is what the journal has from the end of the attempt to the next one.
		wait := s.text(`SELECT round(extract(epoch FROM next_attempt_at - updated_at) / 60)::text FROM ebb.steps WHERE saga_id = $1::uuid AND state = 'READY'`, id)
		want := "5"
		if strings.Contains("day decades endless", name) {
			want = "10"
		}
		require.Equal(t, want, wait, "minutes for %s", key)
	}
}
