package schemas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// known is a file with answers of the registry, for a start while it is away. The meaning of an id never changes within a registry, so
// an answer stays right; of another registry it means nothing, so the file says which one it was.
type known struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	data knownData
}

type knownData struct {
	Registry string               `json:"registry"`
	Subjects map[string]knownID   `json:"subjects"`
	Schemas  map[int]*knownSchema `json:"schemas"`
}

// knownID is the id of a schema of ours under its subject.
type knownID struct {
	ID   int    `json:"id"`
	Hash string `json:"sha256"` // of the schema's text: another release has another schema
}

type knownSchema struct {
	Text       string   `json:"schema"`
	References []string `json:"references,omitempty"`
}

// openKnown reads the file. One that is missing, broken or of another registry counts as empty, and is replaced by the first answer.
func openKnown(ctx context.Context, path string, urls []string, log *slog.Logger) *known {
	registry := strings.Join(slices.Sorted(slices.Values(urls)), ",")
	k := &known{path: path, log: log, data: knownData{registry, map[string]knownID{}, map[int]*knownSchema{}}}
	if path == "" {
		return k
	}
	text, err := os.ReadFile(path)
	var data knownData
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || json.Unmarshal(text, &data) != nil:
		log.WarnContext(ctx, "schemas: file of known schemas cannot be read and will be replaced", "path", path, "error", err)
	case data.Registry == registry:
		maps.Copy(k.data.Subjects, data.Subjects)
		maps.Copy(k.data.Schemas, data.Schemas)
	}
	return k
}

func (k *known) id(m *message) (int, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	got, ok := k.data.Subjects[m.Subject]
	return got.ID, ok && got.ID > 0 && got.Hash == hashOf(m.Schema)
}

func (k *known) source(id int) (Source, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	got := k.data.Schemas[id]
	if got == nil {
		return Source{}, false
	}
	return Source{Text: got.Text, References: got.References}, true
}

func (k *known) learnID(ctx context.Context, m *message, id int) {
	now := knownID{id, hashOf(m.Schema)}
	k.change(ctx, func(d *knownData) bool {
		if d.Subjects[m.Subject] == now {
			return false
		}
		d.Subjects[m.Subject] = now
		return true
	})
}

func (k *known) learnSource(ctx context.Context, id int, s Source) {
	k.change(ctx, func(d *knownData) bool {
		d.Schemas[id] = &knownSchema{s.Text, s.References}
		return true
	})
}

// change writes the file if something is new. A file that cannot be written costs nothing but the next start without a registry.
func (k *known) change(ctx context.Context, add func(*knownData) bool) {
	if k.path == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !add(&k.data) {
		return
	}
	if err := k.write(); err != nil {
		k.log.WarnContext(ctx, "schemas: known schemas were not written down", "path", k.path, "error", err)
	}
}

// write replaces the file in one step, under a name of its own for each process.
func (k *known) write() error {
	text, err := json.Marshal(k.data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(k.path), filepath.Base(k.path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), k.path)
}

func hashOf(schema string) string {
	sum := sha256.Sum256([]byte(schema))
	return hex.EncodeToString(sum[:])
}
