package call

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

// TestReadWish is field case F41: every form, relative to the reply's own clock.
func TestReadWish(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	body, err := spec.Parse("x.yaml", []byte("destination: x\non: E\nbase_url: http://h\nidempotent: true\nrequest: { url: /a }\nrevert: none\nretry: { retry_after: { body: $.error.retryIn } }\n"))
	require.NoError(t, err)
	path := body.Rules().RetryAfter.Body
	for name, c := range map[string]struct {
		format spec.WaitFormat
		values []string
		body   string
		date   string
		want   time.Duration
		asked  bool
	}{
		"seconds":                      {spec.WaitAuto, []string{"2"}, "", "", 2 * time.Second, true},
		"blanks":                       {spec.WaitAuto, []string{"  2 "}, "", "", 2 * time.Second, true},
		"RFC 1123":                     {spec.WaitAuto, []string{"Mon, 30 Nov 2026 20:00:07 GMT"}, "", "", 7 * time.Second, true},
		"RFC 850":                      {spec.WaitAuto, []string{"Monday, 30-Nov-26 20:00:07 GMT"}, "", "", 7 * time.Second, true},
		"asctime":                      {spec.WaitAuto, []string{"Mon Nov 30 20:00:07 2026"}, "", "", 7 * time.Second, true},
		"ISO 8601":                     {spec.WaitAuto, []string{"2026-11-30T20:00:07.5Z"}, "", "", 7500 * time.Millisecond, true},
		"ISO 8601 with zone":           {spec.WaitAuto, []string{"2026-12-01T01:30:07+05:30"}, "", "", 7 * time.Second, true},
		"ISO 8601, zone without colon": {spec.WaitAuto, []string{"2026-12-01T01:30:07+0530"}, "", "", 7 * time.Second, true},
		"ISO 8601 basic":               {spec.WaitAuto, []string{"20261130T200007Z"}, "", "", 7 * time.Second, true},
		"ISO 8601 without zone":        {spec.WaitAuto, []string{"2026-11-30T20:00:07"}, "", "", 0, true},
		"zero":                         {spec.WaitAuto, []string{"0"}, "", "", 0, true},
		"negative":                     {spec.WaitAuto, []string{"-5"}, "", "", 0, true},
		"fraction":                     {spec.WaitAuto, []string{"1.5"}, "", "", 0, true},
		"empty":                        {spec.WaitAuto, []string{""}, "", "", 0, false},
		"word":                         {spec.WaitAuto, []string{"soon"}, "", "", 0, true},
		"past":                         {spec.WaitAuto, []string{"Mon, 30 Nov 2026 19:59:07 GMT"}, "", "", -53 * time.Second, true},
		"twice":                        {spec.WaitAuto, []string{"2", "soon", "5"}, "", "", 5 * time.Second, true},
		"their clock is behind":        {spec.WaitAuto, []string{"Mon, 30 Nov 2026 19:50:07 GMT"}, "", "Mon, 30 Nov 2026 19:50:00 GMT", 7 * time.Second, true},
		"their clock is ahead":         {spec.WaitAuto, []string{"Mon, 30 Nov 2026 20:10:07 GMT"}, "", "Mon, 30 Nov 2026 20:10:00 GMT", 7 * time.Second, true},
		"their date is unreadable":     {spec.WaitAuto, []string{"Mon, 30 Nov 2026 20:00:07 GMT"}, "", "today", 7 * time.Second, true},
		"a Unix time is not guessed":   {spec.WaitAuto, []string{"1790000000"}, "", "", 1790000000 * time.Second, true},
		"unix":                         {spec.WaitUnix, []string{"1796068807"}, "", "", 7 * time.Second, true},
		"unix by their clock":          {spec.WaitUnix, []string{"1796068207"}, "", "Mon, 30 Nov 2026 19:50:00 GMT", 7 * time.Second, true},
		"unix milliseconds":            {spec.WaitUnixMillis, []string{"1796068807250"}, "", "", 7250 * time.Millisecond, true},
		"unix beyond all numbers":      {spec.WaitUnix, []string{"99999999999999999999"}, "", "", longest, true},
		"unix is no date":              {spec.WaitUnix, []string{"Mon, 30 Nov 2026 20:00:07 GMT"}, "", "", 0, true},
		"milliseconds":                 {spec.WaitMilliseconds, []string{"1500"}, "", "", 1500 * time.Millisecond, true},
		"only seconds":                 {spec.WaitSeconds, []string{"Mon, 30 Nov 2026 20:00:07 GMT"}, "", "", 0, true},
		"only dates":                   {spec.WaitHTTPDate, []string{"7"}, "", "", 0, true},
		"only ISO":                     {spec.WaitISO8601, []string{"7"}, "", "", 0, true},
		"beyond all numbers":           {spec.WaitAuto, []string{"99999999999999999999999"}, "", "", longest, true},
		"body":                         {spec.WaitAuto, nil, `{"error":{"retryIn":3}}`, "", 3 * time.Second, true},
		"body text":                    {spec.WaitAuto, nil, `{"error":{"retryIn":"2026-11-30T20:00:03Z"}}`, "", 3 * time.Second, true},
		"body with exponent":           {spec.WaitAuto, nil, `{"error":{"retryIn":3e2}}`, "", 0, true},
		"body after an empty header":   {spec.WaitAuto, []string{""}, `{"error":{"retryIn":3}}`, "", 3 * time.Second, true},
		"header before body":           {spec.WaitAuto, []string{"2"}, `{"error":{"retryIn":3}}`, "", 2 * time.Second, true},
		"no body field":                {spec.WaitAuto, nil, `{"error":{}}`, "", 0, false},
		"body null":                    {spec.WaitAuto, nil, `{"error":{"retryIn":null}}`, "", 0, false},
		"body is not JSON":             {spec.WaitAuto, nil, `slow down`, "", 0, false},
	} {
		h := http.Header{"Retry-After": c.values}
		if c.date != "" {
			h.Set("Date", c.date)
		}
		got := readWish(h, render.ParseReply([]byte(c.body)), spec.RetryAfter{Header: "retry-AFTER", Body: path, Format: c.format}, now)
		require.Equal(t, max(c.want, 0), max(got.wait, 0), name)
		require.Equal(t, c.asked, got.asked, name)
	}
}

func TestWishIsBounded(t *testing.T) {
	t.Parallel()
	rule := spec.RetryAfter{Fallback: 30 * time.Second, Cap: 10 * time.Minute}
	require.Equal(t, time.Minute, wish{wait: time.Minute}.bounded(rule))
	require.Equal(t, 30*time.Second, wish{}.bounded(rule), "nothing readable is the fallback, never zero")
	require.Equal(t, 30*time.Second, wish{wait: -time.Hour}.bounded(rule))
	require.Equal(t, 10*time.Minute, wish{wait: longest}.bounded(rule))
	require.Zero(t, wish{}.bounded(spec.RetryAfter{}), "the backoff decides")
}

func FuzzReadWait(f *testing.F) {
	for _, seed := range []string{"2", "-5", "1.5", "Mon, 30 Nov 2026 20:00:07 GMT", "2026-11-30T20:00:07Z", "99999999999999999999", "９"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		for _, format := range []spec.WaitFormat{spec.WaitAuto, spec.WaitSeconds, spec.WaitMilliseconds, spec.WaitUnix, spec.WaitUnixMillis, spec.WaitHTTPDate, spec.WaitISO8601} {
			w := wish{wait: readWait(value, format, now)}
			wait := w.bounded(spec.RetryAfter{Cap: time.Minute})
			require.GreaterOrEqual(t, wait, time.Duration(0))
			require.LessOrEqual(t, wait, time.Minute)
		}
	})
}
