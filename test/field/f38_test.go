package field

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestF38 is "routing on absent, odd or not-yet-there values". Conditions follow one published truth table and compare exact decimals;
// what no route takes is parked, so that nothing is shipped that was not charged; what is not there yet is waited for.
func TestF38(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reply, url, reason string }{ // by aggregate
		"absent":  {`{}`, "", "value is absent"},
		"null":    {`{"score":null}`, "", "value is null"},
		"word":    {`{"score":"abc"}`, "", "value is text"},
		"list":    {`{"score":[]}`, "", "value is an array"},
		"nojson":  {`score: 70`, "", "not JSON"},
		"numeric": {`{"score":"70"}`, "POST /reviewed-charges", ""},
		"shorter": {`{"score":"69"}`, "POST /charges", ""}, // as text, "69" is above "100"
		"even":    {`{"score":70}`, "POST /reviewed-charges", ""},
		"below":   {`{"score":69.999999999999999}`, "POST /charges", ""},
		"huge":    {`{"score":1e400}`, "POST /reviewed-charges", ""},
		"late":    {`{"score":10}`, "POST /charges", ""},
	}
	release := make(chan struct{})
	w := startWorld(t, func(c seen) answer {
		if c.Destination == "risk" {
			if c.Aggregate == "late" {
				<-release
			}
			return says(200, cases[c.Aggregate].reply)
		}
		return says(200, `{}`)
	})
	s := w.pipeline(t, map[string]string{
		"risk": head("risk", "Scored", "request: { url: /risk }\nrevert: none\n"),
		"billing": head("billing", "Scored", `routes:
  - { when: { from: risk, path: $.score, op: lt, value: 70 }, url: /charges, revert: none }
  - { when: { from: risk, path: $.score, op: gte, value: 70 }, url: /reviewed-charges, revert: none }
`),
		"shipping": head("shipping", "Scored", "after: billing\nrequest: { url: /shipping }\nrevert: none\n"),
		"first": head("first", "Sorted", `routes:
  - { when: { path: $.a, op: exists }, url: /first, revert: none }
  - { when: { path: $.b, op: exists }, url: /second, revert: none }
  - { when: { path: "$..id", op: eq, value: 1 }, url: /several, revert: none }
`),
	})

	ids := map[string]string{"late": s.event("late", "Scored", `{}`)}
	for name := range cases {
		if name != "late" {
			ids[name] = s.event(name, "Scored", `{}`)
		}
	}
	for name, c := range cases {
		switch {
		case name == "late":
		case c.url == "":
			s.comesTo(ids[name], "RUNNING", "billing do parked: no route matches: routes[0] from risk $.score lt 70: ", c.reason)
			require.Empty(t, w.calls(name, "billing"), name)
			require.Empty(t, w.calls(name, "shipping"), "%s: nothing is shipped that was not charged", name)
		default:
			s.comesTo(ids[name], "COMPLETED")
			require.Equal(t, []string{c.url}, w.targets(name, "billing"), name)
		}
	}
	// All the others have gone through while this one's score is not there: it is waited for, unlike one that is absent.
	require.Equal(t, "WAITING", s.text(`SELECT state FROM ebb.steps WHERE saga_id = $1::uuid AND destination = 'billing'`, ids["late"]))
	require.Empty(t, w.calls("late", "billing"))
	close(release)
	s.comesTo(ids["late"], "COMPLETED")
	require.Equal(t, []string{"POST /charges"}, w.targets("late", "billing"))

	for range 3 {
		id := s.event("both", "Sorted", `{"a":1,"b":2}`)
		s.comesTo(id, "COMPLETED")
	}
	require.Subset(t, []string{"POST /first"}, w.targets("both", "first"), "the first that matches, always")
	s.comesTo(s.event("several", "Sorted", `{"x":[{"id":1},{"id":1}]}`), "RUNNING", "no route matches", "path selects 2 values")
}
