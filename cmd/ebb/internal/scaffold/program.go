package scaffold

import (
	"bytes"
	_ "embed" // the templates
	"errors"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:embed program.go.tmpl
var programText string

//go:embed program_test.go.tmpl
var programTestText string

// programName is what package consumers/handler takes as the name of a destination.
var programName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// eventName is an event type that can stand in a program as it is.
var eventName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,199}$`)

// WriteProgram writes a Go program of the destination, with a test against a fake, into Dir, and gives the files' paths.
func WriteProgram(d Destination) ([]string, error) {
	if err := d.programmable(); err != nil {
		return nil, err
	}
	paths := []string{filepath.Join(d.Dir, "main.go"), filepath.Join(d.Dir, "main_test.go")}
	var texts [][]byte
	for i, text := range []string{programText, programTestText} {
		out, err := d.renderGo(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i], err)
		}
		texts = append(texts, out)
	}
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := write(paths[0], texts[0]); err != nil {
		return nil, err
	}
	if err := write(paths[1], texts[1]); err != nil {
		return nil, errors.Join(err, os.Remove(paths[0]))
	}
	return paths, nil
}

// programmable checks what goes into the program's text.
func (d Destination) programmable() error {
	var problems []error
	if !programName.MatchString(d.Name) {
		problems = append(problems, fmt.Errorf("a name of %d characters; use 1 to 64 letters, digits, '-' or '_', beginning with a letter", len(d.Name)))
	}
	if len(d.On) == 0 {
		problems = append(problems, errors.New("no event type; use --on OrderCreated"))
	}
	for _, on := range d.On {
		if !eventName.MatchString(on) {
			problems = append(problems, fmt.Errorf("--on: %d characters that are no event type such as OrderCreated", len(on)))
		}
	}
	for _, after := range d.After {
		if !programName.MatchString(after) || after == d.Name {
			problems = append(problems, fmt.Errorf("--after: %d characters that name no other destination", len(after)))
		}
	}
	return errors.Join(problems...)
}

func (d Destination) renderGo(text string) ([]byte, error) {
	t, err := template.New("").Funcs(template.FuncMap{"strings": goStrings}).Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{"Name": d.Name, "On": d.On, "After": d.After, "Variable": d.Variable()})
	if err != nil {
		return nil, err
	}
	return format.Source(out.Bytes())
}

// goStrings is a slice of strings in Go.
func goStrings(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return "[]string{" + strings.Join(quoted, ", ") + "}"
}
