package scaffold

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/spec"
)

func writes(d Destination) error {
	_, err := Write(d)
	return err
}

var update = flag.Bool("update", false, "write the example")

// TestTheExampleIsWhatIsWritten keeps package example, whose test runs with all others, as `ebb destination new crm --test` writes it.
func TestTheExampleIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "example")
	files, err := Write(Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}, Test: true})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "crm.yaml"), filepath.Join(dir, "crm_test.go")}, files)
	for _, path := range files {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		got = bytes.ReplaceAll(got, []byte(dir), []byte("."))
		example := filepath.Join("example", filepath.Base(path))
		if *update {
			require.NoError(t, os.WriteFile(example, got, 0o644))
		}
		want, err := os.ReadFile(example)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "go test ./cmd/ebb/internal/scaffold -update writes it")
	}
}

func TestTheTestIsOfTheFoldersPackage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my-files 2")
	require.Equal(t, "myfiles2", Destination{Dir: dir}.packageName())
	require.Equal(t, "destinations", Destination{Dir: filepath.Join(dir, "2")}.packageName())
	require.Equal(t, "destinations", Destination{Dir: filepath.Join(dir, "func")}.packageName())
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "embed.go"), []byte("package theirs\n"), 0o600))
	require.Equal(t, "theirs", Destination{Dir: dir}.packageName())
	require.Equal(t, "MailEr2", title("mail-er_2"))

	d := Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}, Test: true}
	require.NoError(t, os.WriteFile(d.TestPath(), []byte("package theirs_test\n"), 0o600))
	require.ErrorContains(t, writes(d), "exists; choose another name")
	require.NoFileExists(t, d.Path(), "all or nothing")
}

func TestTheNewFileIsRightAsItIs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	first := Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}}
	require.NoError(t, writes(first))
	require.NoError(t, writes(Destination{Name: "mail-er", Dir: dir, On: []string{"OrderCreated", "OrderStatusUpdated"}, After: []string{"crm"}}))
	set, err := spec.LoadDir(dir)
	require.NoError(t, err)
	require.Len(t, set, 2)
	require.Empty(t, set[0].Warnings())
	require.Equal(t, []string{"crm"}, set[1].Rules().After)
	require.Equal(t, []string{"OrderCreated", "OrderStatusUpdated"}, set[1].Rules().EventTypes)
	require.Equal(t, "${env:MAIL_ER_URL}", set[1].BaseURL.String())
	require.Equal(t, "MAIL_ER_URL", Destination{Name: "mail-er"}.Variable())
}

func TestNothingIsOverwrittenOrHalfWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	on := []string{"OrderCreated"}
	require.NoError(t, writes(Destination{Name: "crm", Dir: dir, On: on}))
	before, err := os.ReadFile(filepath.Join(dir, "crm.yaml"))
	require.NoError(t, err)
	for what, tt := range map[string]struct {
		d    Destination
		want string
	}{
		"same name":       {Destination{Name: "crm", Dir: dir, On: on}, "crm is a destination already"},
		"path as a name":  {Destination{Name: "../evil", Dir: dir, On: on}, "would not be right"},
		"name with lines": {Destination{Name: "a\nrevert: none", Dir: dir, On: on}, "would not be right"},
		"empty name":      {Destination{Dir: dir, On: on}, "would not be right"},
		"no event":        {Destination{Name: "x", Dir: dir}, "would not be right"},
		"odd event":       {Destination{Name: "x", Dir: dir, On: []string{"a b"}}, "would not be right"},
		"unknown after":   {Destination{Name: "x", Dir: dir, On: on, After: []string{"nobody"}}, "nobody"},
	} {
		require.ErrorContains(t, writes(tt.d), tt.want, what)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	after, err := os.ReadFile(filepath.Join(dir, "crm.yaml"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestAFolderThatIsNotRightIsMendedFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.yaml"), []byte("destination: old\nurll: x\n"), 0o600))
	err := writes(Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}})
	require.ErrorContains(t, err, "mend them first")
	require.ErrorContains(t, err, "old.yaml:2:1")
	require.NoFileExists(t, filepath.Join(dir, "crm.yaml"))
}

func TestAnotherFileOfTheSameNameStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Under this name lies another destination.
	require.NoError(t, writes(Destination{Name: "other", Dir: dir, On: []string{"OrderCreated"}}))
	require.NoError(t, os.Rename(filepath.Join(dir, "other.yaml"), filepath.Join(dir, "crm.yaml")))
	require.ErrorContains(t, writes(Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}}), "exists; choose another name")
}
