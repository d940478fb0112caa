package scaffold

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/spec"
)

func TestTheNewFileIsRightAsItIs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	first := Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}}
	require.NoError(t, YAML(first))
	require.NoError(t, YAML(Destination{Name: "mail-er", Dir: dir, On: []string{"OrderCreated", "OrderStatusUpdated"}, After: []string{"crm"}}))
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
	require.NoError(t, YAML(Destination{Name: "crm", Dir: dir, On: on}))
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
		require.ErrorContains(t, YAML(tt.d), tt.want, what)
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
	err := YAML(Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}})
	require.ErrorContains(t, err, "mend them first")
	require.ErrorContains(t, err, "old.yaml:2:1")
	require.NoFileExists(t, filepath.Join(dir, "crm.yaml"))
}

func TestAnotherFileOfTheSameNameStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Under this name lies another destination.
	require.NoError(t, YAML(Destination{Name: "other", Dir: dir, On: []string{"OrderCreated"}}))
	require.NoError(t, os.Rename(filepath.Join(dir, "other.yaml"), filepath.Join(dir, "crm.yaml")))
	require.ErrorContains(t, YAML(Destination{Name: "crm", Dir: dir, On: []string{"OrderCreated"}}), "exists; choose another name")
}
