package completion

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

type thing struct {
	Color string `help:"It's: any of them." enum:",red,green" default:""`
	Size  int    `help:"How big."`
	Loud  bool   `help:"Loudly."`
	Which string `arg:"" help:"Which." enum:"left,right"`
}

type grammar struct {
	Verbose bool   `help:"Say more."`
	Folder  string `help:"Where."`
	Secret  bool   `hidden:"" help:"Nobody's business."`

	Thing struct {
		Show thing `cmd:"" help:"Show 'it'."`
		Drop thing `cmd:"" help:"Drop it."`
	} `cmd:"" help:"Things."`
	Serve struct {
		Run struct {
			Port int `help:"Port."`
		} `cmd:"" default:"withargs" help:"Run."`
		Stop struct{} `cmd:"" help:"Stop."`
	} `cmd:"" help:"Serve."`
	Ghost struct{} `cmd:"" hidden:"" help:"Hidden."`
}

func script(t *testing.T, shell string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, shell, app(t)))
	return out.String()
}

func app(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := kong.New(&grammar{}, kong.Name("demo"), kong.Writers(io.Discard, io.Discard))
	require.NoError(t, err)
	return parser.Model
}

func TestEveryCommandFlagAndChoiceIsInEveryScript(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text := script(t, shell)
		for _, n := range app(t).Leaves(true) {
			require.Contains(t, text, "'"+n.Path()+"'", shell)
			for _, f := range n.Flags {
				require.Contains(t, text, f.Name, shell)
			}
		}
		for _, want := range []string{"red", "green", "left", "right", "verbose", "help"} {
			require.Contains(t, text, want, shell)
		}
		require.NotContains(t, text, "ghost", shell)
		require.NotContains(t, text, "secret", shell)
	}
	require.ErrorContains(t, Write(io.Discard, "tcsh", app(t)), "bash, zsh and fish")
}

// TestBashCompletes asks a real bash; the others are asked if they are installed.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte(script(t, "bash")), 0o600))
	for line, want := range map[string]string{
		"demo ":                          "thing serve --help --verbose --folder",
		"demo th":                        "thing",
		"demo thing ":                    "show drop --help --verbose --folder",
		"demo --folder thing s":          "serve",
		"demo --verbose thing s":         "show",
		"demo thing show ":               "left right --help --verbose --folder --color --size --loud",
		"demo thing show --color ":       "red green",
		"demo thing show --color g":      "green",
		"demo thing show --size 3 --lo":  "--loud",
		"demo thing show left --color r": "red",
		"demo serve ":                    "run stop --help --verbose --folder --port",
		"demo serve run --p":             "--port",
		"demo nothing ":                  "thing serve --help --verbose --folder",
	} {
		words := strings.Split(line, " ")
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = quote(w)
		}
		program := fmt.Sprintf("source %s; COMP_WORDS=(%s); COMP_CWORD=%d; _demo_complete; echo \"${COMPREPLY[*]}\"", quote(path), strings.Join(quoted, " "), len(words)-1)
		out, err := exec.Command(bash, "--norc", "-c", program).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, want, strings.TrimSpace(string(out)), line)
	}
}

func TestScriptsAreRightInTheirShells(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("not installed")
			}
			file := filepath.Join(t.TempDir(), "script")
			require.NoError(t, os.WriteFile(file, []byte(script(t, shell)), 0o600))
			out, err := exec.Command(path, "-n", file).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Empty(t, string(out))
		})
	}
}
