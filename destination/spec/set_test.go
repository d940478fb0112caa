package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/spec"
)

func file(name, on, extra string) string {
	return "destination: " + name + "\non: " + on + "\nbase_url: http://h\nidempotent: true\n" + extra +
		"\nrequest: { method: POST, url: /a }\nrevert: none\n"
}

func load(t *testing.T, files map[string]string) error {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	specs, err := spec.LoadDir(dir)
	if err == nil {
		require.Len(t, specs, len(files))
	}
	return err
}

func TestCheckSet(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files map[string]string
		want  []string
	}{
		"good": {map[string]string{"a.yaml": file("a", "E", ""), "b.yml": file("b", "E", "after: a")}, nil},
		"unknown name": {
			map[string]string{"a.yaml": file("inventory", "E", ""), "b.yaml": file("b", "E", "after: [inventry]")},
			[]string{`b.yaml:5:9: after names an unknown destination "inventry" (did you mean "inventory"?)`},
		},
		"unknown from": {
			map[string]string{"a.yaml": file("a", "E", `when: { from: bb, path: "$.x", op: exists }`)},
			[]string{`a.yaml:5:15: from names an unknown destination "bb" (allowed: a)`},
		},
		"from of other events": {
			map[string]string{"a.yaml": file("a", "E", `when: { from: b, path: "$.x", op: exists }`), "b.yaml": file("b", "F", "")},
			[]string{`a.yaml:5:15: from names "b", which gets none of the events of "a" (there would never be a reply to read)`},
		},
		"cycle": {
			map[string]string{
				"a.yaml": file("a", "E", "after: [c]"), "b.yaml": file("b", "E", `when: { from: a, path: "$.x", op: exists }`),
				"c.yaml": file("c", "E", "after: [b]"), "d.yaml": file("d", "E", "after: [a]"),
			},
			[]string{`a.yaml:5:9: destinations wait for each other: a after c after b after a (remove one of these edges)`},
		},
		"same name": {
			map[string]string{"a.yaml": file("a", "E", ""), "b.yaml": file("a", "E", "")},
			[]string{`b.yaml:1:1: destination "a" is defined twice (the other is `},
		},
		"all files at once": {
			map[string]string{"a.yaml": file("a", "E", "afer: b"), "b.yaml": file("b", "E", "after: x")},
			[]string{`a.yaml:5:1: unknown key "afer" (did you mean "after"?)`, `b.yaml:5:8: after names an unknown destination "x"`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := load(t, c.files)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			found := problems(t, err)
			require.Len(t, found, len(c.want), err.Error())
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestLoadDirWithoutFiles(t *testing.T) {
	t.Parallel()
	_, err := spec.LoadDir(t.TempDir())
	require.ErrorContains(t, err, "no destination file")
	_, err = spec.LoadDir(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestShippedFiles checks the files that come with Ebb.
func TestShippedFiles(t *testing.T) {
	t.Parallel()
	specs, err := spec.LoadDir("../../consumers/destinations")
	require.NoError(t, err)
	after := map[string][]string{}
	for _, s := range specs {
		rules := s.Rules()
		after[s.Name] = rules.After
		require.Equal(t, s.Name+".yaml", filepath.Base(s.File))
		require.Empty(t, s.Warnings(), s.Name)
		require.Equal(t, spec.IdempotentAlways, rules.Idempotency)
		require.Equal(t, "${env:"+strings.ToUpper(s.Name)+"_URL}", s.BaseURL.String())
	}
	require.Equal(t, map[string][]string{
		"inventory": nil, "fraudCheck": nil, "shipping": {"inventory"},
		"billing": {"fraudCheck", "shipping"}, "notifications": nil,
	}, after)
}
