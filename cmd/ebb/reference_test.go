package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

const reference = "../../docs/reference/cli.md"

func model(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := newParser(&cli{}, io.Discard, io.Discard, func(int) {})
	require.NoError(t, err)
	return parser.Model
}

// TestReferenceIsThatOfTheBinary keeps docs/reference/cli.md from missing a command or a flag, or naming one that is gone.
func TestReferenceIsThatOfTheBinary(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- commands -->\n", "<!-- end of commands -->\n"
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	got, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := commandsText(model(t))
	if *update {
		require.NoError(t, os.WriteFile(reference, []byte(head+begin+want+end+tail), 0o644))
		return
	}
	require.Equal(t, want, got, "go test ./cmd/ebb -run Reference -update writes it")
}

func TestReferenceHasEveryExitCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitUnreachable, exitNotFound, exitRefused} {
		require.Contains(t, string(text), fmt.Sprintf("\n| %d | ", code))
	}
}

// TestCommandsHaveHelp: every command and every flag says what it is, and what is used by people has an example.
func TestCommandsHaveHelp(t *testing.T) {
	t.Parallel()
	for _, n := range model(t).Leaves(true) {
		require.NotEmpty(t, n.Help, n.Path())
		for _, f := range n.Flags {
			require.NotEmpty(t, f.Help, "%s --%s", n.Path(), f.Name)
		}
		for _, a := range n.Positional {
			require.NotEmpty(t, a.Help, "%s %s", n.Path(), a.Name)
		}
		switch strings.Fields(n.Path())[0] {
		case "order", "saga", "dlq", "destination", "sim", "completion":
			require.Contains(t, n.Detail, "Example", n.Path())
		}
	}
}

// commandsText is every command with its arguments and flags.
func commandsText(app *kong.Application) string {
	var b strings.Builder
	b.WriteString("\nFlags of every command:\n\n")
	flags(&b, app.Flags)
	for _, n := range app.Leaves(true) {
		fmt.Fprintf(&b, "### `%s`\n\n%s\n\n", n.FullPath(), n.Help)
		if len(n.Positional) > 0 {
			b.WriteString("| argument | meaning |\n|---|---|\n")
			for _, a := range n.Positional {
				fmt.Fprintf(&b, "| `%s` | %s |\n", a.Summary(), cell(a.Help))
			}
			b.WriteString("\n")
		}
		flags(&b, n.Flags)
		if n.Detail != "" {
			detail, examples, _ := strings.Cut(n.Detail, "Example")
			if detail = strings.TrimSpace(detail); detail != "" {
				fmt.Fprintf(&b, "%s\n\n", detail)
			}
			b.WriteString("```sh\n")
			for line := range strings.Lines(examples) {
				if command, indented := strings.CutPrefix(line, "  "); indented {
					b.WriteString(strings.TrimRight(command, "\n") + "\n")
				}
			}
			b.WriteString("```\n\n")
		}
	}
	return b.String()
}

func flags(b *strings.Builder, list []*kong.Flag) {
	rows := 0
	for _, f := range list {
		if f.Hidden {
			continue
		}
		if rows++; rows == 1 {
			b.WriteString("| flag | default | environment | meaning |\n|---|---|---|---|\n")
		}
		given := ""
		switch {
		case f.Required:
			given = "required"
		case f.Default != "":
			given = "`" + f.Default + "`"
		}
		variable := ""
		if len(f.Envs) > 0 {
			variable = "`" + strings.Join(f.Envs, "`, `") + "`"
		}
		name := "--" + f.Name
		if !f.IsBool() {
			name += "=" + placeHolder(f)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, given, variable, cell(f.Help))
	}
	if rows > 0 {
		b.WriteString("\n")
	}
}

func placeHolder(f *kong.Flag) string {
	if f.PlaceHolder != "" {
		return f.PlaceHolder
	}
	return strings.ToUpper(f.Name)
}

// cell is text in a table of Markdown.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
