// Package docs checks that what the documentation shows is right.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/spec"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestDestinationFilesInTheReadmeAreValid(t *testing.T) {
	t.Parallel()
	blocks := yamlBlock.FindAllStringSubmatch(read(t, "README.md"), -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		_, err := spec.Parse("README.md", []byte(b[1]))
		require.NoError(t, err)
	}
}

var makeTarget = regexp.MustCompile("(?m)(?:^|`)make ([a-z0-9-]+)")

func TestMakeTargetsInTheReadmeExist(t *testing.T) {
	t.Parallel()
	makefile := read(t, "Makefile")
	targets := makeTarget.FindAllStringSubmatch(read(t, "README.md"), -1)
	require.NotEmpty(t, targets)
	for _, m := range targets {
		require.Contains(t, makefile, "\n"+m[1]+":", "make %s", m[1])
	}
}

var testName = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9_]*`)

// TestGuaranteesNameTestsThatExist keeps docs/guarantees.md from promising tests that were renamed or removed.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	defined := definedTests(t)
	for _, name := range testName.FindAllString(read(t, "docs/guarantees.md"), -1) {
		require.Contains(t, defined, name, "docs/guarantees.md names a test that does not exist")
	}
}

// TestEveryGuaranteeHasATestThatCarriesItsNumber looks for G1 to G13 in the names of tests.
func TestEveryGuaranteeHasATestThatCarriesItsNumber(t *testing.T) {
	t.Parallel()
	defined := definedTests(t)
	var missing []string
	for _, g := range []string{"G01", "G02", "G03", "G04", "G05", "G06", "G07", "G08", "G09", "G10", "G11", "G12", "G13"} {
		found := false
		for name := range defined {
			found = found || strings.HasPrefix(name, "Test"+g)
		}
		if !found {
			missing = append(missing, g)
		}
	}
	require.Empty(t, missing)
}

var testFunc = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9_]*)\(`)

func definedTests(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	return out
}
