package spec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/spec"
)

// valid is a file that every case of the problem table changes in one place.
const valid = `destination: stock
on: OrderCreated
base_url: "${env:STOCK_URL}"
idempotent: true
request:
  method: POST
  url: /holds
  body: { orderId: "{event:$.orderId}" }
revert:
  method: DELETE
  url: /holds/{hid}
  extract: { hid: "response:$.holdId" }
`

func problems(t *testing.T, err error) []spec.Problem {
	t.Helper()
	var all *spec.Problems
	require.ErrorAs(t, err, &all)
	return all.List
}

func TestParseValid(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("stock.yaml", []byte(valid))
	require.NoError(t, err)
	rules := s.Rules()
	require.Equal(t, spec.Rules{
		Destination: "stock", Hash: s.Hash(), EventTypes: []string{"OrderCreated"},
		Idempotency: spec.IdempotentAlways,
		OnRefused:   spec.Compensate, OnExhausted: spec.Park, Otherwise: spec.Park, Ordering: spec.OrderingHold,
		MaxAttempts: 4, UndoMaxAttempts: 8, BackoffBase: 2 * time.Second, BackoffMax: 5 * time.Minute,
		RetryAfter: spec.RetryAfter{Header: "Retry-After", Format: spec.WaitAuto, Cap: 10 * time.Minute},
		Timeout:    30 * time.Second, Patience: 24 * time.Hour, Concurrency: 16,
		BreakerAfter: 3, ProbeEvery: time.Second, ProbeMax: 30 * time.Second,
	}, rules)
	require.True(t, s.HasRevert(0))
	require.False(t, s.HasRevert(1))
	require.Equal(t, valid, string(s.Source()))
	require.Len(t, s.Hash(), 64)
	require.Empty(t, s.Warnings())
}

func TestParseEveryKey(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("crm.yaml", []byte(`
destination: crm
on: [OrderCreated, OrderStatusUpdated]
after: [stock]
base_url: https://crm.example.com/v2/
auth: { basic: { user: ebb, password: "${file:/run/secrets/crm}" } }
idempotent: { window: 24h }
timeout: 1500ms
concurrency: 3
rate_limit: { per_second: 0.5, burst: 2 }
breaker: { after: 7, probe: 500ms, probe_max: 10s }
headers: { X-Tenant: "{event:$.tenant}", X-Fixed: 7 }
ordering: pass
on_refused: ignore
on_exhausted: compensate
otherwise: refuse
patience: 12h
retry: { max_attempts: 9, undo_max_attempts: 20, base: 1s, max: 1m, retry_after: { header: X-Wait, fallback: 30s, cap: 2m } }
request:
  method: put
  headers: { X-Tenant: request }
  body: { a: "{from:risk:$.score}", n: 10.50, l: [1, "x{eventId}y", null, true] }
routes:
  - when: { any: [ { path: "$.a", op: exists }, { not: { from: fraud, path: "$.b", op: contains, value: c } } ] }
    url: /contacts/{event:$.id}?q={event:$.q}&z=1
    revert: none
  - url: /other
    method: PATCH
    body: ["{event:$}"]
    headers: { X-Other: "1" }
    revert: { method: POST, url: /undo }
`))
	require.NoError(t, err)
	rules := s.Rules()
	require.Equal(t, []string{"stock", "fraud", "risk"}, rules.After)
	require.Equal(t, spec.IdempotentWindow, rules.Idempotency)
	require.Equal(t, 24*time.Hour, rules.IdempotencyWindow)
	require.Equal(t, 2*time.Second, rules.RateEvery)
	require.Equal(t, 2, rules.RateBurst)
	require.Equal(t, []any{7, 500 * time.Millisecond, 10 * time.Second}, []any{rules.BreakerAfter, rules.ProbeEvery, rules.ProbeMax})
	require.Equal(t, spec.RetryAfter{Header: "X-Wait", Format: spec.WaitAuto, Fallback: 30 * time.Second, Cap: 2 * time.Minute}, rules.RetryAfter)
	require.Equal(t, 20, rules.UndoMaxAttempts)
	require.Equal(t, spec.OrderingPass, rules.Ordering)
	require.Equal(t, "PUT", s.Routes[0].Call.Method)
	require.Equal(t, "PATCH", s.Routes[1].Call.Method)
	require.Len(t, s.Routes[0].Call.Headers, 2, "request.headers replaces a common one")
	require.Len(t, s.Routes[1].Call.Headers, 3)
	require.Equal(t, "10.50", s.Routes[0].Call.Body.Fields[1].Value.Raw, "digits survive")
	require.Equal(t, spec.ValueList, s.Routes[1].Call.Body.Kind)
	require.True(t, s.Routes[0].Call.URL.HasQuery)
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		old, new string
		want     string // one problem as text
	}{
		"unknown key":                  {"idempotent: true", "idempotant: true", `stock.yaml:4:1: unknown key "idempotant" (did you mean "idempotent"?)`},
		"unknown nested key":           {"method: POST", "metod: POST", `stock.yaml:6:3: unknown key "metod" in request (did you mean "method"?)`},
		"key of a later issue":         {"idempotent: true", "pivot: {}", `stock.yaml:4:1: key "pivot" is not supported by this version (remove it)`},
		"duplicate key":                {"idempotent: true", "idempotent: true\non: X", `stock.yaml:5:1: key "on" is written twice (first at line 2; keep one)`},
		"wrong type":                   {"on: OrderCreated", "on: 5", `stock.yaml:2:5: on must be text, not a number (quote it)`},
		"no destination":               {"destination: stock", "after: x", `stock.yaml:1:1: destination is missing (start with: destination: NAME)`},
		"bad name":                     {"destination: stock", "destination: a:b", `stock.yaml:1:14: destination has a name that is not allowed: "a:b" (letters, digits, - and _, starting with a letter, for example billing)`},
		"bad name in list":             {"on: OrderCreated", "on: [a b]", `stock.yaml:2:6: on has a name that is not allowed: "a b" (letters, digits, - and _, starting with a letter, for example OrderCreated)`},
		"twice in a list":              {"on: OrderCreated", "on: [A, A]", `stock.yaml:2:9: on names "A" twice (keep one)`},
		"duration without unit":        {"idempotent: true", "timeout: 5", `stock.yaml:4:10: timeout has no unit (write 5s, or use ms, m, h)`},
		"bad duration":                 {"idempotent: true", "timeout: soon", `stock.yaml:4:10: timeout must be a duration, not "soon" (write for example 500ms, 5s, 10m or 24h)`},
		"duration range":               {"idempotent: true", "timeout: 24h", `stock.yaml:4:10: timeout is 24h0m0s, outside 10ms to 10m0s (write timeout: 10m0s)`},
		"bad integer":                  {"idempotent: true", "concurrency: 1.5", `stock.yaml:4:14: concurrency must be a whole number, not "1.5" (write concurrency: 16)`},
		"integer range":                {"idempotent: true", "concurrency: 0", `stock.yaml:4:14: concurrency is 0, outside 1 to 10000 (write concurrency: 1)`},
		"bad rate":                     {"idempotent: true", "rate_limit: { per_second: -1 }", `stock.yaml:4:27: rate_limit.per_second must be a number above 0, not "-1" (write per_second: 50, or 0.5 for one call in two seconds)`},
		"bad choice":                   {"idempotent: true", "on_refused: compensat", `stock.yaml:4:13: on_refused cannot be "compensat" (did you mean "compensate"?)`},
		"bad idempotent":               {"idempotent: true", "idempotent: sometimes", `stock.yaml:4:13: idempotent cannot be "sometimes" (allowed: true, false, success_only, { window: 24h })`},
		"max below base":               {"idempotent: true", "retry: { base: 5s, max: 1s }", `stock.yaml:4:25: retry.max is 1s, below retry.base of 5s (raise retry.max, or lower retry.base)`},
		"no revert":                    {valid[strings.Index(valid, "revert:"):], "", `stock.yaml:1:1: revert is missing: how is this call undone? (write revert: none, or revert with method and url)`},
		"revert of a wrong kind":       {valid[strings.Index(valid, "revert:"):], "revert: nothing\n", `stock.yaml:9:9: revert cannot be "nothing" (write revert: none, or revert with method and url)`},
		"revert without method":        {"  method: DELETE\n", "", `stock.yaml:10:3: revert has no method (add method:)`},
		"undefined placeholder":        {"{hid}", "{hod}", `stock.yaml:11:8: placeholder {hod} in revert.url is not defined (did you mean {hid}?)`},
		"reply in a request":           {"{event:$.orderId}", "{response:$.id}", `stock.yaml:8:20: placeholder {response:$.id} in request.body: there is no "response" here (allowed: event, from)`},
		"misspelled source":            {"{event:$.orderId}", "{evnt:$.orderId}", `stock.yaml:8:20: placeholder {evnt:$.orderId} in request.body: there is no "evnt" here (did you mean "event"?)`},
		"bad path":                     {"$.orderId", "$.order[", `stock.yaml:8:20: placeholder {event:$.order[} in request.body: JSONPath $.order[: unexpected eof at position 9 (write a path of RFC 9535, for example $.lines[0].id)`},
		"path without dollar":          {"$.orderId", "orderId", `stock.yaml:8:20: placeholder {event:orderId} in request.body: JSONPath must start with $ (write $.orderId)`},
		"numbers in a filter":          {"$.orderId", "$.l[?@.n > 5].id", `stock.yaml:8:20: placeholder {event:$.l[?@.n > 5].id} in request.body: JSONPath filter compares numbers, which would be rounded to floating point (compare with a string, true, false or null, or use a condition with op)`},
		"lone brace":                   {"{event:$.orderId}", "{event:$.orderId", `stock.yaml:8:20: request.body has a brace without its partner (write {{ or }} for a literal brace)`},
		"secret in a body":             {"{event:$.orderId}", "${env:TOKEN}", `stock.yaml:8:20: request.body holds a ${…} reference, which would be stored with each request (references belong in base_url and auth)`},
		"secret in the file":           {"idempotent: true", "auth: { bearer: s3cr3t-canary }", `stock.yaml:4:17: auth.bearer is written into the file (keep it outside and write ${env:NAME} or ${file:PATH})`},
		"two ways of auth":             {"idempotent: true", `auth: { bearer: "${env:A}", basic: {} }`, `stock.yaml:4:9: auth has 2 ways to prove who calls (write one of bearer, basic, header, oauth2; mtls may go with it)`},
		"bad reference":                {"${env:STOCK_URL}", "${vault:X}", `stock.yaml:3:11: base_url has a reference that is neither ${env:NAME} nor ${file:PATH} (write ${env:NAME} or ${file:PATH})`},
		"credentials in url":           {"${env:STOCK_URL}", "https://u:canary@h", `stock.yaml:3:11: base_url holds credentials; move them to auth (write for example https://api.example.com/v1)`},
		"no base_url":                  {"base_url: \"${env:STOCK_URL}\"\n", "", `stock.yaml:1:1: base_url is missing (write for example base_url: "${env:STOCK_URL}")`},
		"absolute url":                 {"url: /holds\n", "url: https://x/holds\n", `stock.yaml:7:8: request.url must start with one slash (scheme, host and a common prefix belong in base_url)`},
		"network path":                 {"url: /holds\n", "url: //x/holds\n", `stock.yaml:7:8: request.url must start with one slash (scheme, host and a common prefix belong in base_url)`},
		"dot segment":                  {"url: /holds\n", "url: /a/%2e%2e/b\n", `stock.yaml:7:8: request.url has a . or .. segment or a backslash (percent-encode other characters, and use placeholders only for a path segment or a query value)`},
		"blank in url":                 {"url: /holds\n", "url: /a b\n", `stock.yaml:7:8: request.url has a character that a URL cannot hold: ' ' (percent-encode other characters, and use placeholders only for a path segment or a query value)`},
		"query name":                   {"url: /holds\n", "url: \"/a?{eventId}=1\"\n", `stock.yaml:7:8: request.url has a placeholder in a query name (percent-encode other characters, and use placeholders only for a path segment or a query value)`},
		"own header":                   {"idempotent: true", "headers: { x-event-id: a }", `stock.yaml:4:12: header x-event-id in headers is set by Ebb (remove it)`},
		"credential header":            {"idempotent: true", "headers: { Authorization: canary }", `stock.yaml:4:12: header Authorization in headers carries a credential, and headers are stored (use auth with ${env:NAME})`},
		"bad method":                   {"method: POST", "method: POTS", `stock.yaml:6:11: request.method cannot be "POTS" (did you mean "POST"?)`},
		"body on GET":                  {"method: POST", "method: GET", `stock.yaml:8:11: request.body: GET has no body (move the values to the query of url)`},
		"odd number":                   {`"{event:$.orderId}"`, "0x1f", `stock.yaml:8:20: "0x1f" is not written as a JSON number (write decimal digits, or quote it to make it text)`},
		"unknown operator":             {"idempotent: true", `when: { path: "$.a", op: equals, value: 1 }`, `stock.yaml:4:26: unknown operator "equals" in when (allowed: eq, ne, gt, gte, lt, lte, contains, exists)`},
		"misspelled operator":          {"idempotent: true", `when: { path: "$.a", op: gtt, value: 1 }`, `stock.yaml:4:26: unknown operator "gtt" in when (did you mean "gt"?)`},
		"order of texts":               {"idempotent: true", `when: { path: "$.a", op: gt, value: "5" }`, `stock.yaml:4:37: when: gt compares numbers, and the value is text (write 5 without quotes)`},
		"missing value":                {"idempotent: true", `when: { path: "$.a", op: eq }`, `stock.yaml:4:26: when: eq needs a value (add value:)`},
		"value of exists":              {"idempotent: true", `when: { path: "$.a", op: exists, value: 1 }`, `stock.yaml:4:41: when: exists takes no value (remove value, or use not for absence)`},
		"mixed condition":              {"idempotent: true", `when: { all: [], op: eq }`, `stock.yaml:4:9: when mixes all with other keys (nest them under all or any)`},
		"empty all":                    {"idempotent: true", `when: { all: [] }`, `stock.yaml:4:14: when.all must be a list of conditions (write - { path: $.a, op: eq, value: b })`},
		"otherwise":                    {"idempotent: true", "otherwise: skip", `stock.yaml:4:1: otherwise needs routes (without routes, a false when skips the step)`},
		"waits for itself":             {"idempotent: true", "after: stock", `stock.yaml:4:8: stock cannot wait for itself (remove it)`},
		"unknown alias":                {"idempotent: true", "retry: *retry", `stock.yaml:4:8: alias *retry has no anchor before it (write & and the name before the value that is meant)`},
		"alias in itself":              {"idempotent: true", "retry: &r { base: *r }", `stock.yaml:4:19: alias *r has no anchor before it (write & and the name before the value that is meant)`},
		"YAML tag":                     {"idempotent: true", "timeout: !!str 5s", `stock.yaml:4:10: YAML tags are not supported (quote the value to make it text)`},
		"meaningful extract":           {"{ hid: \"response:$.holdId\" }", "{ hid: \"response:$.holdId\", eventId: \"event:$.a\" }", `stock.yaml:12:40: revert.extract: {eventId} has a meaning of its own (choose another name)`},
		"extract without source":       {"response:$.holdId", "$.holdId", `stock.yaml:12:19: revert.extract.hid names no source (write request:$.path, response:$.path or event:$.path)`},
		"extract of an unknown source": {"response:$.holdId", "reply:$.holdId", `stock.yaml:12:19: placeholder {reply:$.holdId} in revert.extract.hid: there is no "reply" here (allowed: event, request, response)`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, valid, c.old)
			_, err := spec.Parse("stock.yaml", []byte(strings.Replace(valid, c.old, c.new, 1)))
			require.Error(t, err)
			var texts []string
			for _, p := range problems(t, err) {
				texts = append(texts, p.String())
			}
			require.Contains(t, texts, c.want)
			require.NotContains(t, err.Error(), "canary", "a secret in the wrong place is not echoed")
		})
	}
}

func TestParseRouteProblems(t *testing.T) {
	t.Parallel()
	head := "destination: d\non: E\nbase_url: http://h\nidempotent: true\nrequest: { method: POST }\nroutes:\n"
	route := func(when string) string {
		if when != "" {
			when = "when: " + when + ", "
		}
		return "  - { " + when + "url: /a, revert: none }\n"
	}
	lt50, lt40 := `{ path: "$.a", op: lt, value: 50 }`, `{ path: "$.a", op: lt, value: 40.0 }`
	cases := map[string]struct {
		routes  string
		reached bool
	}{
		"two ranges":          {route(lt50) + route(`{ path: "$.a", op: gte, value: 50 }`), true},
		"narrow before wide":  {route(lt40) + route(lt50), true},
		"wide before narrow":  {route(lt50) + route(lt40), false},
		"the same twice":      {route(lt50) + route(lt50), false},
		"after always":        {route("") + route(lt50), false},
		"always at the end":   {route(lt50) + route(""), true},
		"exists before eq":    {route(`{ path: "$.a", op: exists }`) + route(lt50), false},
		"another path":        {route(`{ path: "$.b", op: exists }`) + route(lt50), true},
		"equal within range":  {route(lt50) + route(`{ path: "$.a", op: eq, value: 49.99 }`), false},
		"equal at the border": {route(lt50) + route(`{ path: "$.a", op: eq, value: 50 }`), true},
		"lte at the border":   {route(lt50) + route(`{ path: "$.a", op: lte, value: 50 }`), true},
		"any before part":     {route(`{ any: [`+lt50+`, { path: "$.c", op: exists }] }`) + route(lt40), false},
		"part before all":     {route(lt50) + route(`{ all: [`+lt50+`, { path: "$.c", op: exists }] }`), false},
		"all before part":     {route(`{ all: [`+lt50+`, { path: "$.c", op: exists }] }`) + route(lt50), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := spec.Parse("d.yaml", []byte(head+c.routes))
			if c.reached {
				require.NoError(t, err)
				return
			}
			found := problems(t, err)
			require.Len(t, found, 1)
			require.Contains(t, found[0].Message, "routes[1] is never reached: routes[0] at line 7")
			require.Equal(t, 8, found[0].Line)
		})
	}
	_, err := spec.Parse("d.yaml", []byte(head+"  - { url: /a }\nrevert: none\n"))
	require.ErrorContains(t, err, "d.yaml:7:7: routes[0].revert is missing")
	require.ErrorContains(t, err, "d.yaml:8:1: revert at the top does not go with routes")
}

// TestGoldenProblems pins the full report for whole files, so that places and
// wording change only on purpose.
func TestGoldenProblems(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/problems/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = spec.Parse(filepath.Base(file), data)
		require.Error(t, err)
		golden := strings.TrimSuffix(file, ".yaml") + ".golden"
		if os.Getenv("UPDATE_GOLDEN") != "" {
			require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
		}
		want, readErr := os.ReadFile(golden)
		require.NoError(t, readErr, "run the test with UPDATE_GOLDEN=1 to write it")
		require.Equal(t, string(want), err.Error()+"\n")
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	text := strings.Replace(valid, "idempotent: true\n", "", 1)
	text = strings.Replace(text, "{ hid:", "{ other: \"request:$.a\", hid:", 1)
	s, err := spec.Parse("stock.yaml", []byte(text))
	require.NoError(t, err)
	require.Len(t, s.Warnings(), 2)
	require.Contains(t, s.Warnings()[0].Message, "idempotent is not set")
	require.Contains(t, s.Warnings()[1].Message, "revert.extract.other is not used")

	s, err = spec.Parse("stock.yaml", []byte(strings.Replace(valid, "idempotent: true", "idempotent: { window: 1h }", 1)))
	require.NoError(t, err)
	require.Len(t, s.Warnings(), 1)
	require.Contains(t, s.Warnings()[0].Message, "longer than the idempotency window")
}

func TestNotOneMapping(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":         "",
		"comment":       "# nothing\n",
		"list":          "- a\n",
		"text":          "hello",
		"two documents": "a: 1\n---\nb: 2\n",
		"unclosed":      "a: [",
		"tab":           "a:\n\t- b",
		"too large":     "a: " + strings.Repeat("x", 70_000),
		"too deep":      strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000),
		"many aliases":  "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := spec.Parse("x.yaml", []byte(text))
			for _, p := range problems(t, err) {
				require.Positive(t, p.Line)
				require.Positive(t, p.Column)
				require.NotEmpty(t, p.Message)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	text := strings.Replace(valid, "idempotent: true", `auth: { header: { name: X-Key, value: "k ${file:/run/key}" } }`, 1)
	s, err := spec.Parse("stock.yaml", []byte(text))
	require.NoError(t, err)
	env := map[string]string{"STOCK_URL": "https://stock.example.com/v1"}
	lookup := spec.Lookup{
		Env:  func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		File: func(string) ([]byte, error) { return []byte("canary-123\n"), nil },
	}
	live, err := s.Resolve(lookup)
	require.NoError(t, err)
	require.Equal(t, "https://stock.example.com/v1", live.BaseURL().String())
	header, value, ok := live.Credential()
	require.True(t, ok)
	require.Equal(t, "X-Key", header)
	require.Equal(t, "k canary-123", value)
	require.Equal(t, []string{"k canary-123"}, live.Secrets())
	encoded, err := json.Marshal(live)
	require.NoError(t, err)
	shown := fmt.Sprintf("%v %+v %#v %s %+v %s", live, live, live, live.LogValue(), struct{ inner spec.Live }{live}, encoded)
	require.NotContains(t, string(s.Source())+s.Hash()+shown, "canary")
	require.NotContains(t, shown, "stock.example.com", "an address may hold a secret too")

	broken := map[string]func(*spec.Lookup){
		"${env:STOCK_URL} is not set": func(l *spec.Lookup) {
			l.Env = func(string) (string, bool) { return "", false }
		},
		"${env:STOCK_URL} is empty": func(l *spec.Lookup) {
			l.Env = func(string) (string, bool) { return " ", true }
		},
		"must begin with http:// or https://": func(l *spec.Lookup) {
			l.Env = func(string) (string, bool) { return "ftp://canary", true }
		},
		"holds credentials": func(l *spec.Lookup) {
			l.Env = func(string) (string, bool) { return "https://canary@h", true }
		},
		"has a query or fragment": func(l *spec.Lookup) {
			l.Env = func(string) (string, bool) { return "https://h?key=canary", true }
		},
		"is not a URL": func(l *spec.Lookup) {
			l.Env = func(string) (string, bool) { return "https://h:canary", true }
		},
		"has no host": func(l *spec.Lookup) {
			l.Env = func(string) (string, bool) { return "https:canary", true }
		},
		"has a . or .. segment": func(l *spec.Lookup) {
			l.Env = func(string) (string, bool) { return "https://h/canary/..", true }
		},
		"${file:/run/key} cannot be read": func(l *spec.Lookup) {
			l.File = func(string) ([]byte, error) { return nil, errors.New("canary") }
		},
		"holds a control character": func(l *spec.Lookup) {
			l.File = func(string) ([]byte, error) { return []byte("canary\r\nX: 1\n"), nil }
		},
	}
	for want, change := range broken {
		l := lookup
		change(&l)
		_, err := s.Resolve(l)
		var reference *spec.ResolveError
		require.ErrorAs(t, err, &reference)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary")
	}
}

func TestDecimal(t *testing.T) {
	t.Parallel()
	ascending := []string{
		"-1e1000000000", "-1E3", "-100.5", "-100", "-0.001", "0", "1e-1000000000", "0.0001", "0.5",
		"69.999999999999999", "70", "9007199254740992", "9007199254740993", "1e20", "123456789012345678901234567890",
		"1e1000000000",
	}
	for i, a := range ascending {
		for j, b := range ascending {
			x, ok := spec.ParseDecimal(a)
			require.True(t, ok, a)
			y, ok := spec.ParseDecimal(b)
			require.True(t, ok, b)
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			require.Equal(t, want, x.Cmp(y), "%s against %s", a, b)
		}
	}
	for _, same := range [][2]string{{"50", "50.0"}, {"5e1", "50"}, {"0", "-0.00"}, {"0e5", "0"}, {"12.30", "1.23E+1"}, {"0.05", "5e-2"}} {
		x, _ := spec.ParseDecimal(same[0])
		y, _ := spec.ParseDecimal(same[1])
		require.Zero(t, x.Cmp(y), same)
	}
	for _, bad := range []string{"", "-", "+1", "01", ".5", "1.", "1e", "1e+", "0x1", "1_0", " 1", "NaN", "1e" + strings.Repeat("9", 2000)} {
		_, ok := spec.ParseDecimal(bad)
		require.False(t, ok, bad)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	files, err := filepath.Glob("../../consumers/destinations/*.yaml")
	require.NoError(f, err)
	more, err := filepath.Glob("testdata/problems/*.yaml")
	require.NoError(f, err)
	for _, file := range append(files, more...) {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := spec.Parse("f.yaml", data)
		if err != nil {
			for _, p := range problems(t, err) {
				require.Positive(t, p.Line)
				require.Positive(t, p.Column)
			}
			return
		}
		require.NotEmpty(t, s.Name)
		require.NotEmpty(t, s.Routes)
		again, err := spec.Parse("f.yaml", s.Source())
		require.NoError(t, err)
		require.Equal(t, s.Hash(), again.Hash())
	})
}

func TestAnUndoNeverGivesUpEarlierThanItsCall(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("stock.yaml", []byte(valid+"retry: { max_attempts: 9 }\n"))
	require.NoError(t, err)
	require.Equal(t, 9, s.Rules().UndoMaxAttempts)
}
