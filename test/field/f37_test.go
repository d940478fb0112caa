package field

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/test/harness"
)

// TestF37 is "SSRF and redirects". What is connected to is the address of base_url and no other, and never one behind which no
// destination can be; a redirect is our set-up gone wrong, and nobody but the destination sees our key.
func TestF37(t *testing.T) {
	t.Parallel()
	other := startWorld(t, func(seen) answer { return says(200, `{"transaction":{"id":"stolen"}}`) })
	var w *world
	w = startWorld(t, func(c seen) answer {
		switch c.Destination {
		case "found", "moved", "permanent":
			status := map[string]int{"found": 302, "moved": 307, "permanent": 308}[c.Destination]
			return answer{status: status, header: http.Header{"Location": {other.url + "/charges"}}}
		case "itself":
			return answer{status: 302, header: http.Header{"Location": {w.url + "/elsewhere"}}}
		}
		return says(200, `{}`)
	})
	port := w.url[strings.LastIndexByte(w.url, ':'):]
	addresses := map[string]string{ // by destination
		"metadata": "http://169.254.169.254/latest", "mapped": "http://[::ffff:169.254.169.254]", "unspecified": "http://0.0.0.0" + port,
		"decimal": "http://2130706433" + port, "local": "file:///etc/passwd", "user": "http://ebb:" + canary + "@127.0.0.1" + port,
	}
	files, env := map[string]string{}, []string{}
	file := func(name, on string) {
		files[name] = strings.Replace(head(name, on, "patience: 1s\nrequest: { url: /charges }\nrevert: none\n"), "WORLD_URL", strings.ToUpper(name)+"_URL", 1)
	}
	for name, url := range addresses {
		file(name, "On"+name)
		env = append(env, strings.ToUpper(name)+"_URL="+url)
	}
	for _, name := range []string{"found", "moved", "permanent", "itself"} {
		file(name, "On"+name)
		env = append(env, strings.ToUpper(name)+"_URL="+w.url)
	}
	s := w.pipeline(t, files, env...)

	ids := map[string]string{}
	for name := range files {
		ids[name] = s.event(name, "On"+name, `{"callbackUrl":"http://169.254.169.254"}`)
	}
	for name, id := range ids {
		s.comesTo(id, "RUNNING", name+" do parked: ")
		first := s.text(`SELECT class || ' ' || sent || ' ' || status FROM ebb.calls WHERE saga_id = $1::uuid ORDER BY epoch LIMIT 1`, id)
		switch {
		case addresses[name] == "":
			require.Regexp(t, `^MISCONFIGURED true 30[278]$`, first, name)
			require.Subset(t, []string{"POST /charges"}, w.targets(name, name), "not followed")
		case name == "decimal": // some resolvers take it for a name that does not exist
			require.Regexp(t, `^(NOT_SENT|MISCONFIGURED) false 0$`, first)
		default:
			require.Equal(t, "MISCONFIGURED false 0", first, "%s: %s", name, s.stepsOf(id))
		}
		require.NotContains(t, s.stepsOf(id), canary)
	}
	require.Empty(t, other.calls("", ""), "the second host never sees our key")
	for name := range addresses {
		require.Empty(t, w.calls("", name), name)
	}
	require.Equal(t, "0", s.text(`SELECT count(*)::text FROM ebb.sagas WHERE state <> 'RUNNING'`), "none of it is a business failure (G10)")
	harness.Canary(t, s.ebb, canary)

	// An address from the event is refused before anything runs.
	dir := harness.WriteDestinations(t, map[string]string{"callback": head("callback", "OrderCreated", "request: { url: \"{event:$.callbackUrl}\" }\nrevert: none\n")})
	out, err := exec.CommandContext(t.Context(), harness.Build(t), "config", "check", dir).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), fmt.Sprintf("%s/callback.yaml:8:17: request.url must start with one slash", dir))
}
