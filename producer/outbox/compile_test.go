package outbox_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exported returns an importer of compiled packages, as the go command builds
// them.
func exported(t *testing.T, fset *token.FileSet) types.Importer {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}",
		"github.com/ebbline/ebb/producer/outbox", "github.com/jackc/pgx/v5/pgxpool").Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}

// TestG01OnlyATransactionCompiles type-checks calls of this package: the fault that
// it prevents must be a compile error, not a run-time one.
func TestG01OnlyATransactionCompiles(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	packages := exported(t, fset)
	tests := []struct {
		argument string
		compiles bool
	}{
		{"pgx.Tx", true},
		{"*pgxpool.Tx", true},
		{"*pgxpool.Pool", false},
		{"*pgxpool.Conn", false},
		{"*pgx.Conn", false},
	}
	for _, tt := range tests {
		file, err := parser.ParseFile(fset, "snippet.go", `package snippet
			import (
				"context"
				"github.com/ebbline/ebb/producer/outbox"
				"github.com/jackc/pgx/v5"
				"github.com/jackc/pgx/v5/pgxpool"
			)
			var _ pgx.Tx
			var _ *pgxpool.Pool
			func write(ctx context.Context, db `+tt.argument+`) {
				_, _ = outbox.Write(ctx, db, outbox.Event{})
				_, _ = outbox.Table{}.Write(ctx, db, outbox.Event{})
			}`, 0)
		require.NoError(t, err)
		var problems []error
		config := types.Config{Importer: packages, Error: func(err error) { problems = append(problems, err) }}
		_, _ = config.Check("snippet", fset, []*ast.File{file}, nil)
		if tt.compiles {
			require.Empty(t, problems, tt.argument)
			continue
		}
		require.Len(t, problems, 2, tt.argument)
		require.ErrorContains(t, problems[0], "does not implement pgx.Tx")
	}
}
