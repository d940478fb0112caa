package harness

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// filesWith finds the files below a folder that contain the text. The database's files are left to SQL.
func filesWith(t testing.TB, dir, text string) []string {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "postgres":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
		return nil // a file that is gone by now holds nothing
	})
	require.NoError(t, err)
	return found
}
