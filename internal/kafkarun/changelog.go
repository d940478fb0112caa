package kafkarun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// CorruptError says that the registry's file cannot be read.
type CorruptError struct {
	Path   string
	Line   int
	Detail string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("registry file %s, line %d: %s; restore it from a copy, since records refer to the ids in it", e.Path, e.Line, e.Detail)
}

// change is one line of the registry's file: a request that changed something,
// and the id it was answered with.
type change struct {
	Version int    `json:"v"`
	Method  string `json:"method"`
	URI     string `json:"uri"` // path and query
	Body    string `json:"body,omitempty"`
	ID      int    `json:"id,omitempty"` // schema id, for a registration
}

const changeVersion = 1

// changelog is the file of changes, one JSON object per line, appended and
// flushed before anybody is told.
type changelog struct {
	file *os.File
}

// openChangelog reads the changes so far and opens the file for more.
func openChangelog(path string, log *slog.Logger) (*changelog, []change, error) {
	_, statErr := os.Stat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	changes, err := readChanges(f, path, log)
	if err == nil && errors.Is(statErr, os.ErrNotExist) {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &changelog{file: f}, changes, nil
}

func readChanges(f *os.File, path string, log *slog.Logger) ([]change, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole < len(data) {
		// Cut by a crash before the reply: nobody was told of this change.
		log.Warn("kafkarun: dropping an unfinished last line of the registry file", "path", path, "bytes", len(data)-whole)
		if err := errors.Join(f.Truncate(int64(whole)), f.Sync()); err != nil {
			return nil, err
		}
	}
	var changes []change
	for line := range bytes.Lines(data[:whole]) {
		var c change
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, &CorruptError{Path: path, Line: len(changes) + 1, Detail: "it is not a JSON object of a change"}
		}
		if c.Version != changeVersion {
			return nil, &CorruptError{Path: path, Line: len(changes) + 1, Detail: fmt.Sprintf("it has version %d, this program reads version %d", c.Version, changeVersion)}
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (l *changelog) append(c change) error {
	c.Version = changeVersion
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return l.file.Sync()
}

func (l *changelog) close() error { return l.file.Close() }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
