package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/schemas"
)

// schemaWait is the wait of a role for the ids of its schemas: without them nothing can be published, so that no call may be made
// either. Once they are known the registry may go away.
type schemaWait struct {
	registry *schemas.Client
	known    chan struct{} // closed when they are

	mu  sync.Mutex
	err error // of the newest try
}

func newSchemaWait(registry *schemas.Client) *schemaWait {
	return &schemaWait{registry: registry, known: make(chan struct{}), err: errors.New("not asked yet")}
}

// run asks until the ids are known, and returns then. A registry that answers and does not have them is an error: waiting would not
// help.
func (w *schemaWait) run(ctx context.Context) error {
	err := w.registry.Await(ctx, func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = err
	})
	if err == nil {
		close(w.known)
	}
	return err
}

// actor is run as a part of a role, which lives on when the ids are known.
func (w *schemaWait) actor(ctx context.Context) error {
	if err := w.run(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// after runs a part of a role once the ids are known.
func (w *schemaWait) after(run func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-w.known:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// check is the readiness.
func (w *schemaWait) check(context.Context) error {
	select {
	case <-w.known:
		return nil
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return waitingError{w.err}
}

// waitingError says that the role waits, and for what.
type waitingError struct{ error }

func (e waitingError) Error() string {
	return "waiting for the schema registry, nothing is lost: " + e.error.Error()
}

// guard answers changes while the ids are not known: their events could not be written. Reading goes on.
func (w *schemaWait) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || w.check(r.Context()) == nil {
			next.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/problem+json")
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(rw).Encode(map[string]any{
			"type": "urn:ebb:problem:schemas-unknown", "title": "The schema registry is not available", "status": http.StatusServiceUnavailable,
			"detail": "the ids of the event schemas are not known yet, so that nothing can be changed and nothing was; try again", "instance": r.URL.Path,
		})
	})
}

// publishing is of roles that write events.
type publishing struct {
	SchemaFile string `help:"Keep what the schema registry has answered in this file, to start on it while the registry is away." env:"EBB_SCHEMA_FILE" placeholder:"FILE" type:"path"`
}

// on gives the addresses with the file.
func (p publishing) on(w where) where {
	w.schemaFile = p.SchemaFile
	return w
}

// recordFlags describe the records of an outbox that is not Ebb's.
type recordFlags struct {
	RecordFormat  string `help:"How record values are written: avro, json, or auto for either." enum:"auto,avro,json" default:"auto" env:"EBB_RECORD_FORMAT"`
	HeaderID      string `help:"Header of the event's id, a UUID." default:"id" env:"EBB_HEADER_ID" placeholder:"NAME"`
	HeaderType    string `help:"Header of the event's type." default:"eventType" env:"EBB_HEADER_TYPE" placeholder:"NAME"`
	HeaderVersion string `help:"Header of the aggregate's version; if named, every record must have it, else records without aggregateVersion are in the order of their partition." env:"EBB_HEADER_VERSION" placeholder:"NAME"`
	HeaderTime    string `help:"Header of the time at which the event was made." env:"EBB_HEADER_TIME" placeholder:"NAME"`
	HeaderTrace   string `help:"Header of the trace context." default:"traceparent" env:"EBB_HEADER_TRACE" placeholder:"NAME"`
	EventType     string `help:"Type of records without a type header, for topics of one type." env:"EBB_EVENT_TYPE" placeholder:"TYPE"`
}

func (f recordFlags) records() consumers.Records {
	return consumers.Records{ID: f.HeaderID, Type: f.HeaderType, EventType: f.EventType, Version: f.HeaderVersion, Time: f.HeaderTime, TraceParent: f.HeaderTrace}
}

// decoder decodes values of the flags' format.
func (f recordFlags) decoder(codec *schemas.Codec) (consumers.Decoder, error) {
	format, err := schemas.ParseFormat(f.RecordFormat)
	if err != nil {
		return nil, &usageError{err}
	}
	return codec.As(format), nil
}
