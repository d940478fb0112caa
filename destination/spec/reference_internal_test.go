package spec

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/reference/destination-files.md; keys that are new get no meaning")

const (
	reference   = "../../docs/reference/destination-files.md"
	beginOfKeys = "<!-- keys -->\n"
	endOfKeys   = "<!-- end of keys -->\n"
)

// allOfIt has every mapping of the format, so that the parser meets each of its keys.
var allOfIt = []string{`destination: a
on: E
base_url: http://h
auth: { basic: {}, mtls: {} }
idempotent: { window: 24h }
rate_limit: { per_second: 1 }
redact: {}
classify: [ { status: 409, as: retry } ]
success_when: { path: $.a, op: exists }
lookup: { url: /a }
request: { url: /a }
revert: { url: /a, method: POST }
`, `destination: a
on: E
base_url: http://h
auth: { header: {} }
routes: [ { url: /a, revert: none } ]
`, `destination: a
on: E
base_url: http://h
auth: { oauth2: {} }
request: { url: /a }
revert: none
`}

// known gives every key of the format with what the parser says of its value, "" where that is more than one value.
func known() map[string]string {
	out := map[string]string{}
	for _, text := range allOfIt {
		c := &catalog{keys: map[string][]string{}, values: map[string]string{}}
		p := &fileParser{reader: &reader{file: "all.yaml", catalog: c}, spec: &Spec{}, used: map[*Ref]bool{}}
		p.document(buildTree(p.reader, []byte(text)))
		for what, keys := range c.keys {
			for _, key := range keys {
				place := strings.TrimPrefix(what+"."+key, ".")
				value := c.values[place]
				out[general(what, key, place)] = value
			}
		}
	}
	// Where both are allowed, the mapping is one of several forms.
	return out
}

var index = regexp.MustCompile(`\[\d+\]`)

// general names a key apart from where it is written: conditions are the same everywhere.
func general(what, key, place string) string {
	if strings.HasSuffix(what, "_when") || strings.HasSuffix(what, "when") && what != "" {
		return "condition." + key
	}
	return index.ReplaceAllString(place, "[]")
}

// row is a line of the table.
type row struct{ value, meaning string }

func TestReferenceHasEveryKey(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), beginOfKeys)
	require.True(t, ok)
	table, tail, ok := strings.Cut(rest, endOfKeys)
	require.True(t, ok)
	rows := map[string]row{}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) == 3 && strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], "|` ")] = row{cells[1], strings.TrimSuffix(cells[2], " |")}
		}
	}
	keys := known()
	if *update {
		require.NoError(t, os.WriteFile(reference, []byte(head+beginOfKeys+tableOf(keys, rows)+endOfKeys+tail), 0o600))
		return
	}
	require.Equal(t, slices.Sorted(maps.Keys(keys)), slices.Sorted(maps.Keys(rows)), "go test ./destination/spec -run Reference -update writes the keys")
	for key, value := range keys {
		require.NotEmpty(t, rows[key].meaning, "%s has no meaning in %s", key, reference)
		if value != "" {
			require.Equal(t, value, rows[key].value, key)
		}
		require.NotEmpty(t, rows[key].value, "%s has no type in %s", key, reference)
	}
}

func tableOf(keys map[string]string, rows map[string]row) string {
	var b strings.Builder
	b.WriteString("| key | type, default, range | meaning |\n|---|---|---|\n")
	for _, key := range slices.SortedFunc(maps.Keys(keys), byTree) {
		r := rows[key]
		if keys[key] != "" {
			r.value = keys[key]
		}
		b.WriteString("| `" + key + "` | " + r.value + " | " + r.meaning + " |\n")
	}
	return b.String()
}

// byTree puts the keys of the top first in the parser's order, and then those of each mapping.
func byTree(a, b string) int {
	rank := func(key string) string {
		mapping := ""
		if i := strings.LastIndexByte(key, '.'); i >= 0 {
			mapping = key[:i]
		}
		return mapping + "\x00" + key
	}
	return strings.Compare(rank(a), rank(b))
}
