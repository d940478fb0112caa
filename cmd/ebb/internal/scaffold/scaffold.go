package scaffold

import (
	"bytes"
	_ "embed" // the template
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/ebbline/ebb/destination/spec"
)

//go:embed destination.yaml.tmpl
var yamlText string

//go:embed fake_test.go.tmpl
var testText string

// Destination is what a new destination is to be.
type Destination struct {
	// Name of the destination, and of its file. Required.
	Name string
	// Dir is the folder of destination files; it is made if it is not there. Required.
	Dir string
	// On are the event types that it gets. Required.
	On []string
	// After are the destinations that settle before it.
	After []string
	// Test also writes a Go test that sends what the file says to a fake of the destination.
	Test bool
}

// Variable is the environment variable with the destination's address.
func (d Destination) Variable() string {
	return strings.ToUpper(strings.ReplaceAll(d.Name, "-", "_")) + "_URL"
}

// Path is the file that is written.
func (d Destination) Path() string { return filepath.Join(d.Dir, d.Name+".yaml") }

// TestPath is the Go test that is written beside it. Its name has one underscore: what follows a further one could name a system.
func (d Destination) TestPath() string {
	return filepath.Join(d.Dir, strings.ToLower(title(d.Name))+"_test.go")
}

// Write writes the files and gives their paths.
func Write(d Destination) ([]string, error) {
	text, err := d.render(yamlText)
	if err != nil {
		return nil, err
	}
	s, err := spec.Parse(d.Path(), text)
	if err != nil {
		return nil, fmt.Errorf("the file would not be right:\n%w", err)
	}
	if err := d.fits(s); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return nil, err
	}
	if !d.Test {
		return []string{d.Path()}, write(d.Path(), text)
	}
	test, err := d.render(testText)
	if err != nil {
		return nil, err
	}
	if err := write(d.TestPath(), test); err != nil {
		return nil, err
	}
	if err := write(d.Path(), text); err != nil {
		return nil, errors.Join(err, os.Remove(d.TestPath()))
	}
	return []string{d.Path(), d.TestPath()}, nil
}

func (d Destination) render(text string) ([]byte, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]string{
		"Name": d.Name, "Dir": filepath.ToSlash(d.Dir), "On": flow(d.On), "After": flow(d.After), "Variable": d.Variable(),
		"Package": d.packageName(), "Title": title(d.Name), "Event": strings.Join(d.On[:min(1, len(d.On))], ""),
	})
	return out.Bytes(), err
}

// packageName is the package of the folder's Go files: that of a file there, else the folder's name.
func (d Destination) packageName() string {
	files, err := filepath.Glob(filepath.Join(d.Dir, "*.go"))
	if err == nil {
		for _, path := range files {
			if f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly); err == nil {
				return strings.TrimSuffix(f.Name.Name, "_test")
			}
		}
	}
	abs, err := filepath.Abs(d.Dir)
	if err != nil {
		abs = d.Dir
	}
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, filepath.Base(abs)))
	if !token.IsIdentifier(name) {
		return "destinations"
	}
	return name
}

// title is a name as part of a Go identifier.
func title(name string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// flow is a name, or a list of them, in YAML.
func flow(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// fits checks the new file together with those beside it.
func (d Destination) fits(s *spec.Spec) error {
	var set []*spec.Spec
	found, err := filepath.Glob(filepath.Join(d.Dir, "*.y*ml"))
	if err != nil {
		return err
	}
	if len(found) > 0 {
		if set, err = spec.LoadDir(d.Dir); err != nil {
			return fmt.Errorf("the files that are there are not right; mend them first:\n%w", err)
		}
	}
	for _, other := range set {
		if other.Name == d.Name {
			return fmt.Errorf("%s is a destination already, in %s", d.Name, other.File)
		}
	}
	return spec.CheckSet(append(set, s))
}

// write makes a file that must not exist.
func write(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; choose another name, or remove it", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
