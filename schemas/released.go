package schemas

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
)

// The released schemas, one folder per subject: released/SUBJECT/vN.avsc. Files are added and never changed or removed.
//
//go:embed released/*/*.avsc
var releasedFiles embed.FS

// Release is a released version of a subject's schema.
type Release struct {
	Version int    // 1, 2, …
	Schema  string // Avro schema, JSON text
}

// Releases lists the released versions of a subject, oldest first; none if the subject is not one of ours.
func Releases(subject string) []Release { return releases()[subject] }

// releases reads the embedded files once. It panics if they are broken, which no input can cause: they are part of the program.
var releases = sync.OnceValue(func() map[string][]Release {
	all, err := readReleases(releasedFiles, "released")
	if err != nil {
		panic(err)
	}
	return all
})

// CheckReleased checks the schemas of all our event types against all their released versions, in both directions (FULL_TRANSITIVE
// and more, see [Evolves]). Problems are joined; each is an [IncompatibleError] or an [UnreleasedError].
func CheckReleased() error {
	var errs []error
	known := map[string]bool{}
	for _, m := range contract().messages {
		known[m.Subject] = true
		errs = append(errs, CheckReleases(m.Subject, Releases(m.Subject), m.Schema))
	}
	for subject := range releases() {
		if !known[subject] {
			errs = append(errs, fmt.Errorf("subject %s has releases and no event type any more; readers of its records still need it", subject))
		}
	}
	return errors.Join(errs...)
}

// WriteReleases adds a version to the folder for every event type whose schema is not its newest release, and gives the paths of the
// new files. Nothing is written if one of them may not follow its releases: the error joins an [IncompatibleError] for each.
func WriteReleases(dir string) ([]string, error) {
	all, err := readReleases(os.DirFS(dir), ".")
	if err != nil {
		return nil, err
	}
	var conflicts []error
	news := map[string]string{}
	for _, m := range contract().messages {
		err := CheckReleases(m.Subject, all[m.Subject], m.Schema)
		var missing *UnreleasedError
		switch {
		case errors.As(err, &missing):
			news[filepath.Join(dir, m.Subject, fmt.Sprintf("v%d.avsc", missing.Version))] = m.Schema
		case err != nil:
			conflicts = append(conflicts, err)
		}
	}
	if len(conflicts) > 0 {
		return nil, errors.Join(conflicts...)
	}
	return writeAll(news)
}

func writeAll(files map[string]string) ([]string, error) {
	var written []string
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return written, err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil { //nolint:gosec // it is part of the source
			return written, err
		}
		written = append(written, name)
	}
	return written, nil
}

// readReleases reads SUBJECT/vN.avsc; the versions of a subject are numbered without a gap.
func readReleases(files fs.FS, root string) (map[string][]Release, error) {
	out := map[string][]Release{}
	subjects, err := fs.ReadDir(files, root)
	if err != nil {
		return nil, fmt.Errorf("released schemas: %w", err)
	}
	for _, d := range subjects {
		subject := d.Name()
		versions, err := fs.ReadDir(files, path.Join(root, subject))
		if err != nil {
			return nil, fmt.Errorf("released schemas: %w", err)
		}
		for v := 1; v <= len(versions); v++ {
			text, err := fs.ReadFile(files, path.Join(root, subject, fmt.Sprintf("v%d.avsc", v)))
			if err != nil {
				return nil, fmt.Errorf("released schemas: %s has %d files, which should be v1.avsc to v%d.avsc: %w", subject, len(versions), len(versions), err)
			}
			out[subject] = append(out[subject], Release{v, string(text)})
		}
	}
	return out, nil
}

func compact(schema string) (string, error) {
	var b bytes.Buffer
	err := json.Compact(&b, []byte(schema))
	return b.String(), err
}
