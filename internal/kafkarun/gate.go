package kafkarun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/sr"
)

// maxRequest bounds a request body.
const maxRequest = 1 << 20

// gate stands before the in-memory registry. It checks compatibility, which
// that one does not, and writes each change down before the reply.
type gate struct {
	inner http.Handler
	log   *slog.Logger

	mu      sync.RWMutex // held for writing from the first look to the write-down
	changes *changelog
	broken  bool // a change is in memory and not in the file
}

func newGate(inner http.Handler, path string, log *slog.Logger) (*gate, error) {
	changes, past, err := openChangelog(path, log)
	if err != nil {
		return nil, err
	}
	g := &gate{inner: inner, log: log, changes: changes}
	for i, c := range past {
		if detail := g.replay(c); detail != "" {
			_ = changes.close()
			return nil, &CorruptError{Path: path, Line: i + 1, Detail: detail}
		}
	}
	return g, nil
}

// replay applies a change of an earlier run. It is not checked again: records
// may hold its id.
func (g *gate) replay(c change) (problem string) {
	r, err := http.NewRequest(c.Method, c.URI, strings.NewReader(c.Body)) //nolint:noctx // no network
	if err != nil {
		return "it has no valid request"
	}
	reply := g.ask(r)
	if reply.status >= 300 {
		return fmt.Sprintf("the change is refused with status %d", reply.status)
	}
	if id := reply.id(); c.ID != 0 && id != c.ID {
		return fmt.Sprintf("the schema got id %d, the file says %d", id, c.ID)
	}
	return ""
}

func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes.close()
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Contexts are a name space for subjects that the in-memory registry only
	// looks at when reading. Here there is one.
	if strings.HasPrefix(r.URL.Path, "/contexts/") {
		writeReply(w, refuse(http.StatusNotFound, 404, "registry contexts are not supported here"))
		return
	}
	if r.URL.Path == "/healthz" {
		g.health(w)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		writeReply(w, refuse(http.StatusRequestEntityTooLarge, 413, "the request body is larger than 1 MiB or was cut"))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	writeReply(w, g.handle(r, body))
}

func (g *gate) health(w http.ResponseWriter) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.broken {
		http.Error(w, "the registry file cannot be written; free disk space and restart", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

func (g *gate) handle(r *http.Request, body []byte) *reply {
	subject, kind := route(r)
	if kind == reading {
		g.mu.RLock()
		defer g.mu.RUnlock()
	} else {
		g.mu.Lock()
		defer g.mu.Unlock()
	}
	if g.broken {
		return refuse(http.StatusServiceUnavailable, 50001, "the registry file cannot be written; free disk space and restart")
	}
	switch kind {
	case registering:
		return g.register(r, subject, body)
	case checking:
		return g.check(r, subject, body)
	case levelling:
		if g.hasLevel(subject, body) {
			return g.ask(r)
		}
	case reading:
		return g.ask(r)
	}
	return g.change(r, body)
}

// register adds a schema, unless the subject has it already.
func (g *gate) register(r *http.Request, subject string, body []byte) *reply {
	if known := g.post("/subjects/"+url.PathEscape(subject), body); known.status == http.StatusOK {
		return g.ask(r)
	}
	if refused := g.judge(subject, body); refused != nil {
		return refused
	}
	return g.change(r, body)
}

// change lets the in-memory registry do it, then writes it down.
func (g *gate) change(r *http.Request, body []byte) *reply {
	uri := r.URL.RequestURI()
	done := g.ask(r)
	if done.status >= 300 {
		return done
	}
	if err := g.changes.append(change{Method: r.Method, URI: uri, Body: string(body), ID: done.id()}); err != nil {
		g.broken = true
		g.log.Error("kafkarun: the registry file cannot be written; the registry answers 503 until it is restarted", "error", err)
		return refuse(http.StatusServiceUnavailable, 50001, "the change could not be written to the registry file")
	}
	return done
}

// hasLevel reports whether the subject has this very compatibility setting.
func (g *gate) hasLevel(subject string, body []byte) bool {
	var want struct {
		Level sr.CompatibilityLevel `json:"compatibility"`
	}
	now, ok := g.level(subject, "?defaultToGlobal=false")
	return ok && json.Unmarshal(body, &want) == nil && want.Level == now
}

// level gives the compatibility level of a subject, of all for "".
func (g *gate) level(subject, query string) (sr.CompatibilityLevel, bool) {
	var have struct {
		Level sr.CompatibilityLevel `json:"compatibilityLevel"`
	}
	path := "/config"
	if subject != "" {
		path += "/" + url.PathEscape(subject) + query
	}
	got := g.get(path)
	ok := got.status == http.StatusOK && got.decode(&have) == nil && have.Level != 0
	return have.Level, ok
}

// kind is what a request does.
type kind int

const (
	reading     kind = iota
	changing         // anything else that is written down
	registering      // adds a schema to a subject
	levelling        // sets a compatibility level
	checking         // asks whether a schema could be added
)

// route gives the kind of a request and the subject it is about.
func route(r *http.Request) (subject string, k kind) {
	parts := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	for i := range parts {
		if p, err := url.PathUnescape(parts[i]); err == nil {
			parts[i] = p
		}
	}
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return "", reading
	case r.Method == http.MethodPost && len(parts) == 3 && parts[0] == "subjects" && parts[2] == "versions":
		return parts[1], registering
	case r.Method == http.MethodPost && len(parts) >= 4 && parts[0] == "compatibility" && parts[1] == "subjects":
		return parts[2], checking
	case r.Method == http.MethodPost: // a look-up by schema text
		return "", reading
	case r.Method == http.MethodPut && len(parts) == 2 && parts[0] == "config":
		return parts[1], levelling
	case r.Method == http.MethodPut && len(parts) == 1 && parts[0] == "config":
		return "", levelling
	}
	return "", changing
}
