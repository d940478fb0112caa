package scaffold

import (
	"bytes"
	_ "embed" // the template
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/ebbline/ebb/destination/spec"
)

//go:embed destination.yaml.tmpl
var yamlText string

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
}

// Variable is the environment variable with the destination's address.
func (d Destination) Variable() string {
	return strings.ToUpper(strings.ReplaceAll(d.Name, "-", "_")) + "_URL"
}

// Path is the file that is written.
func (d Destination) Path() string { return filepath.Join(d.Dir, d.Name+".yaml") }

// YAML writes the destination file.
func YAML(d Destination) error {
	text, err := d.render()
	if err != nil {
		return err
	}
	s, err := spec.Parse(d.Path(), text)
	if err != nil {
		return fmt.Errorf("the file would not be right:\n%w", err)
	}
	if err := d.fits(s); err != nil {
		return err
	}
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return err
	}
	return write(d.Path(), text)
}

func (d Destination) render() ([]byte, error) {
	t, err := template.New("destination").Parse(yamlText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]string{
		"Name": d.Name, "Dir": filepath.ToSlash(d.Dir), "On": flow(d.On), "After": flow(d.After), "Variable": d.Variable(),
	})
	return out.Bytes(), err
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
