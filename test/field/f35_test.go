package field

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestF35 is "placeholders: missing, empty, travelling". A value that cannot be one segment of a URL makes no call at all, neither of
// the step nor of its undo, and the step is parked with the placeholder's name.
func TestF35(t *testing.T) {
	t.Parallel()
	values := map[string]string{ // JSON member, "" for none
		"absent": ``, "null": `null`, "empty": `""`, "blank": `"  "`, "object": `{}`, "array": `[1]`, "up": `"../../admin"`, "dots": `".."`,
		"encoded": `"%2e%2e%2f"`, "odd": `"a/b?x=1#f"`, "line": `"h-1\n"`,
	}
	member := func(name string) string {
		if values[name] == "" {
			return `{}`
		}
		return fmt.Sprintf(`{"holdId":%s}`, values[name])
	}
	w := startWorld(t, func(c seen) answer {
		switch c.Destination {
		case "hold":
			return says(200, member(strings.TrimPrefix(c.Aggregate, "undo-")))
		case "late":
			if c.Aggregate == "first" {
				break // a version that refused everything from its first result on would be paused
			}
			return says(422, `{}`)
		}
		return says(200, `{}`)
	})
	s := w.pipeline(t, map[string]string{
		"release": head("release", "Released", "request: { method: DELETE, url: \"/stock/holds/{event:$.holdId}\" }\nrevert: none\n"),
		"hold": head("hold", "Held", `request: { url: /stock/holds }
revert: { method: DELETE, url: "/stock/holds/{hid}", extract: { hid: "response:$.holdId" } }
`),
		"late": head("late", "Held", "after: hold\nrequest: { url: /late }\nrevert: none\n"),
	})
	s.comesTo(s.event("first", "Held", `{}`), "COMPLETED")
	for name := range values {
		forward, undo := s.event("do-"+name, "Released", member(name)), s.event("undo-"+name, "Held", `{}`)
		if name == "odd" {
			const one = "DELETE /stock/holds/a%2Fb%3Fx%3D1%23f"
			s.comesTo(forward, "COMPLETED")
			require.Equal(t, []string{one}, w.targets("do-"+name, "release"))
			s.comesTo(undo, "COMPENSATED")
			require.Equal(t, []string{"POST /stock/holds", one}, w.targets("undo-"+name, "hold"))
			continue
		}
		s.comesTo(forward, "RUNNING", "release do parked: url: placeholder {event:$.holdId}: ")
		require.Empty(t, w.calls("do-"+name, ""), name)
		s.comesTo(undo, "COMPENSATING", "hold undo parked: the undo request could not be rendered")
		require.Equal(t, []string{"POST /stock/holds"}, w.targets("undo-"+name, "hold"), name)
		require.Contains(t, s.text(`SELECT error FROM ebb.calls WHERE saga_id = $1::uuid AND destination = 'hold'`, undo), "placeholder {hid}: ", name)
	}
	for _, c := range w.calls("", "") {
		require.False(t, c.Method == "DELETE" && !strings.HasSuffix(c.Target, "/a%2Fb%3Fx%3D1%23f"), c.Target)
		require.True(t, c.Method != "DELETE" || strings.HasPrefix(c.Target, "/stock/holds/"))
	}
}
