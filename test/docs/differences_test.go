package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const differences = "docs/reference/differences.md"

// rows are the cells of the table between two comments, without its head.
func rows(t *testing.T, text, name string) (out [][]string) {
	t.Helper()
	_, table, found := strings.Cut(text, "<!-- "+name+" -->\n")
	require.True(t, found, name)
	table, _, found = strings.Cut(table, "<!-- end of "+name+" -->")
	require.True(t, found, name)
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		if i < 2 {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
		}
		out = append(out, cells)
	}
	return out
}

var namedTest = regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9_]+)`")

// folderHasTest says whether a test function of the name is in the folder.
func folderHasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

// TestDifferencesNameTestsThatExist: each line of both tables names tests, in the folder where they are.
func TestDifferencesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	text := read(t, differences)
	floor := rows(t, text, "floor")
	require.GreaterOrEqual(t, len(floor), 29, "a capability is missing")
	lines := append(floor, rows(t, text, "weaknesses")...)
	var missing []string
	for _, cells := range lines {
		named := namedTest.FindAllStringSubmatch(cells[len(cells)-1], -1)
		require.NotEmpty(t, named, "%s: no test is named", cells[0])
		require.Equal(t, strings.Count(cells[len(cells)-1], "`"), 2*len(named), "%s: something else than `folder.TestName`", cells[0])
		for _, n := range named {
			if !folderHasTest(t, n[1], n[2]) {
				missing = append(missing, n[0]+" of "+cells[0])
			}
		}
	}
	require.Empty(t, missing, "%s names tests that do not exist", differences)
}

// TestDifferencesHaveEveryWeakness: W-01 to W-39, each once and in order.
func TestDifferencesHaveEveryWeakness(t *testing.T) {
	t.Parallel()
	var got, want []string
	for _, cells := range rows(t, read(t, differences), "weaknesses") {
		require.Len(t, cells, 4, cells[0])
		got = append(got, cells[0])
	}
	for n := 1; n <= 39; n++ {
		want = append(want, fmt.Sprintf("W-%02d", n))
	}
	require.Equal(t, want, got)
}

var codePlace = regexp.MustCompile("`((?:cmd|consumers|destination|journal|producer|schemas|sim|compensator|internal)[a-z0-9/_.]*)`")

// TestDifferencesNamePlacesThatExist: files and folders that are said to prevent something.
func TestDifferencesNamePlacesThatExist(t *testing.T) {
	t.Parallel()
	for _, cells := range rows(t, read(t, differences), "weaknesses") {
		for _, m := range codePlace.FindAllStringSubmatch(cells[2], -1) {
			_, err := os.Stat(filepath.Join(root, m[1]))
			require.NoError(t, err, cells[0])
		}
	}
}
