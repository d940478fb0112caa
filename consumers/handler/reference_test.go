package handler_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers/handler"
)

const reference = "../../docs/reference/go-destinations.md"

// The program in the reference is the one in examples, which is compiled and vetted there.
func TestReferenceShowsTheExample(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("../../examples/cmd/crm/main.go")
	require.NoError(t, err)
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	_, shown, ok := strings.Cut(string(text), "```go\n")
	require.True(t, ok)
	shown, _, ok = strings.Cut(shown, "```\n")
	require.True(t, ok)
	require.Equal(t, string(program), shown)
}

func TestReferenceHasEveryOptionAndEveryError(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	for _, of := range []reflect.Type{
		reflect.TypeFor[handler.Destination](), reflect.TypeFor[handler.Config](), reflect.TypeFor[handler.Retry](),
	} {
		for i := range of.NumField() {
			require.Contains(t, string(text), "`"+of.Field(i).Name+"`", "%s.%s", of.Name(), of.Field(i).Name)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	require.NoError(t, err)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
			require.Contains(t, string(text), "`"+f.Name.Name+"(", f.Name.Name)
		}
	}
}
