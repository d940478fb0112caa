package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// applyConfigFile lets `--config FILE` give the flags of a command: a YAML mapping of flag names to values. Flags on the command line
// win. Unknown names are errors.
func applyConfigFile(parser *kong.Kong, args []string) error {
	path := configArg(args)
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalWithOptions(text, &values, yaml.Strict()); err != nil {
		return fmt.Errorf("--config %s: %w", path, err)
	}
	known := flagNames(parser.Model.Node)
	for name := range values {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--config %s: %q is not a flag of this command; see `ebb up --help`", path, name)
		}
	}
	var resolve kong.ResolverFunc = func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		v, given := values[flag.Name]
		if !given {
			return nil, nil
		}
		return fmt.Sprint(v), nil
	}
	return kong.Resolvers(resolve).Apply(parser)
}

// configArg finds the file before the command line is parsed.
func configArg(args []string) string {
	for i, a := range args {
		switch {
		case a == "--config" && i+1 < len(args):
			return args[i+1]
		case strings.HasPrefix(a, "--config="):
			return strings.TrimPrefix(a, "--config=")
		}
	}
	return ""
}

func flagNames(n *kong.Node) []string {
	var out []string
	for _, f := range n.Flags {
		out = append(out, f.Name)
	}
	for _, c := range n.Children {
		out = append(out, flagNames(c)...)
	}
	return out
}
