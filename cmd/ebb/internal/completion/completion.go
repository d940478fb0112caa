// Package completion writes completion scripts for shells from the model of a command line. The scripts hold everything they need:
// completing starts no process.
//
// # Invariants
//
//   - Every command, flag and choice of the model is in every script, hidden ones aside.
//   - Texts of the model reach a script only quoted for its shell.
package completion

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// place is where the cursor can be: behind a command.
type place struct {
	path     string // commands without the program, separated by spaces
	children []*kong.Node
	flags    []*kong.Flag // its own and those of the commands above
	choices  []string     // of its arguments
}

// Write writes the script for bash, zsh or fish.
func Write(w io.Writer, shell string, app *kong.Application) error {
	places := walk(app.Node, nil, nil)
	var text string
	switch shell {
	case "bash":
		text = bash(app.Name, places)
	case "zsh":
		text = zsh(app.Name, places)
	case "fish":
		text = fish(app.Name, places)
	default:
		return fmt.Errorf("no completion for %q; there is one for bash, zsh and fish", shell)
	}
	_, err := io.WriteString(w, text)
	return err
}

func walk(n *kong.Node, path []string, above []*kong.Flag) []place {
	p := place{path: strings.Join(path, " "), flags: slices.Clone(above)}
	for _, f := range n.Flags {
		if !f.Hidden {
			p.flags = append(p.flags, f)
		}
	}
	for _, a := range n.Positional {
		if a.Enum != "" {
			p.choices = append(p.choices, values(a)...)
		}
	}
	var below []place
	for _, c := range n.Children {
		if c.Hidden {
			continue
		}
		p.children = append(p.children, c)
		below = append(below, walk(c, append(slices.Clone(path), c.Name), p.flags)...)
	}
	if d := n.DefaultCmd; d != nil {
		// A command that stands for its parent shares its flags.
		for _, f := range d.Flags {
			if !f.Hidden {
				p.flags = append(p.flags, f)
			}
		}
	}
	return append([]place{p}, below...)
}

func values(v *kong.Value) []string {
	var out []string
	for _, e := range v.EnumSlice() {
		if e != "" {
			out = append(out, e)
		}
	}
	return out
}

// words are what may follow at a place: commands, choices, flags.
func (p place) words() []string {
	var out []string
	for _, c := range p.children {
		out = append(out, c.Name)
	}
	out = append(out, p.choices...)
	for _, f := range p.flags {
		out = append(out, "--"+f.Name)
	}
	return out
}

// describe gives a word and its help.
type described struct{ word, help string }

func (p place) described() []described {
	var out []described
	for _, c := range p.children {
		out = append(out, described{c.Name, c.Help})
	}
	for _, c := range p.choices {
		out = append(out, described{c, ""})
	}
	for _, f := range p.flags {
		out = append(out, described{"--" + f.Name, f.Help})
	}
	return out
}

// quote is a word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// valued lists the flags that take a value, and those of them with choices.
func valued(places []place) (names []string, choices map[string][]string) {
	choices = map[string][]string{}
	for _, p := range places {
		for _, f := range p.flags {
			name := "--" + f.Name
			if f.IsBool() || slices.Contains(names, name) {
				continue
			}
			names = append(names, name)
			if f.Enum != "" {
				choices[name] = values(f.Value)
			}
		}
	}
	slices.Sort(names)
	return names, choices
}
