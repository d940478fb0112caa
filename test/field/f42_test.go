package field

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestF42 is "status classes". One order per status; each first reply is that status, the next ones are good.
func TestF42(t *testing.T) {
	t.Parallel()
	const (
		again  = "again"  // asked again under the same key, and done
		undone = "undone" // a definite no
		ours   = "ours"   // our set-up: nothing is undone (G10)
	)
	cases := map[string]struct { // by status and what the body says
		class, then string
	}{
		"408": {"UNKNOWN", again}, "425": {"RETRY", again}, "429": {"RETRY", again}, "503": {"UNKNOWN", again}, "503 later": {"RETRY", again},
		"500": {"UNKNOWN", again}, "502": {"UNKNOWN", again}, "504": {"UNKNOWN", again}, "409 in_progress": {"UNKNOWN", again},
		"400": {"REFUSED", undone}, "402": {"REFUSED", undone}, "404": {"REFUSED", undone}, "409 insufficient_stock": {"REFUSED", undone},
		"410": {"REFUSED", undone}, "422": {"REFUSED", undone}, "500 validation": {"REFUSED", undone}, "200 declined": {"REFUSED", undone},
		"409 already_done": {"SUCCEEDED", again},
		"304":              {"MISCONFIGURED", ours}, "401": {"MISCONFIGURED", ours}, "403": {"MISCONFIGURED", ours}, "501": {"MISCONFIGURED", ours},
	}
	w := startWorld(t, func(c seen) answer {
		if c.Destination != "charge" || c.Nth > 1 {
			return says(200, `{"code":"captured"}`)
		}
		status, code, _ := strings.Cut(c.Aggregate, " ")
		n, err := strconv.Atoi(status)
		if err != nil {
			return says(200, `{"code":"captured"}`)
		}
		a := says(n, fmt.Sprintf(`{"code":%q}`, code))
		if n == http.StatusNotModified {
			a.body = ""
		}
		if code == "later" {
			a.header = http.Header{"Retry-After": {"0"}}
		}
		return a
	})
	s := w.pipeline(t, map[string]string{
		"stock": head("stock", "Charged", "request: { url: /stock }\nrevert: { method: DELETE, url: /stock }\n"),
		"charge": head("charge", "Charged", `after: stock
patience: 2s
request: { url: /charges }
revert: none
failure_when: { path: $.code, op: eq, value: declined }
classify:
  - { status: 409, when: { path: $.code, op: eq, value: in_progress }, as: unknown }
  - { status: 409, when: { path: $.code, op: eq, value: already_done }, as: succeeded }
  - { status: 5xx, when: { path: $.code, op: eq, value: validation }, as: refused }
`),
	})
	s.comesTo(s.event("first", "Charged", `{}`), "COMPLETED") // a version that refused everything from its first result on would be paused
	ids := map[string]string{}
	for name := range cases {
		ids[name] = s.event(name, "Charged", `{}`)
	}
	for name, c := range cases {
		id := ids[name]
		status, _, _ := strings.Cut(name, " ")
		switch c.then {
		case again:
			s.comesTo(id, "COMPLETED")
			calls, classes := w.calls(name, "charge"), c.class+" "+status
			if c.class != "SUCCEEDED" {
				classes += ", SUCCEEDED 200"
				require.Len(t, calls, 2, name)
				require.Equal(t, calls[0].Key, calls[1].Key, "one key for one step (G4)")
			}
			require.Equal(t, classes, s.classes(id, "charge"), name)
		case undone:
			s.comesTo(id, "COMPENSATED")
			require.Equal(t, c.class+" "+status, s.classes(id, "charge"), name)
			require.Equal(t, []string{"POST /stock", "DELETE /stock"}, w.targets(name, "stock"), name)
		case ours:
			s.until(func() (bool, string) {
				got := s.classes(id, "charge")
				return strings.HasPrefix(got, c.class+" "+status), name + ": " + got
			})
			s.until(func() (bool, string) { // a retry, or an operator; never an undo
				got := s.sagaState(id)
				return got == "COMPLETED" || strings.HasPrefix(got, "RUNNING parked: charge do parked: "), got
			})
			require.Equal(t, []string{"POST /stock"}, w.targets(name, "stock"), name)
		}
	}
}
