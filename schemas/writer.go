package schemas

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	twmb "github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
)

// Bounds of a schema with references.
const (
	maxReferences     = 64
	maxReferenceDepth = 16
)

// writer is a schema that records were written with, by registry id.
type writer struct {
	id     int
	schema *twmb.Schema
	root   *node
}

func newWriter(id int, schema *twmb.Schema) (*writer, error) {
	root, err := compile(schema.Root())
	if err != nil {
		return nil, err
	}
	return &writer{id: id, schema: schema, root: root}, nil
}

// writerByID finds the schema of an id. A schema that can be fetched but not
// used is the records' fault and gives a DecodeError.
func (c *Client) writerByID(ctx context.Context, id int) (*writer, error) {
	if w, ok := c.writers.Load(id); ok {
		return w.(*writer), nil
	}
	if c.unknown.has(id) {
		return nil, &UnknownSchemaError{ID: id}
	}
	op := "schema id " + strconv.Itoa(id)
	v, err := c.once(ctx, op, func(ctx context.Context) (any, error) {
		// Somebody else's request may have ended since the look above.
		if w, ok := c.writers.Load(id); ok {
			return w, nil
		}
		w, err := c.fetch(ctx, id, op)
		if err != nil {
			return nil, err
		}
		c.writers.Store(id, w)
		c.log.DebugContext(ctx, "schemas: schema fetched", "schema_id", id, "record", w.root.name)
		return w, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*writer), nil
}

// fetch asks the registry, and falls back on what it said to an earlier run.
func (c *Client) fetch(ctx context.Context, id int, op string) (*writer, error) {
	source, err := c.sourceOf(ctx, id, op)
	if away, ok := errors.AsType[*UnavailableError](err); ok {
		if before, known := c.known.source(id); known {
			c.log.WarnContext(ctx, "schemas: the registry is away, going on with the schema that it gave before", "schema_id", id, "error", away)
			return parseWriterSource(id, before)
		}
	}
	if err != nil {
		return nil, err
	}
	w, err := parseWriterSource(id, source)
	if err == nil {
		c.known.learnSource(ctx, id, source)
	}
	return w, err
}

// sourceOf asks for a schema and for those that it refers to.
func (c *Client) sourceOf(ctx context.Context, id int, op string) (Source, error) {
	fetched, err := c.sr.SchemaByID(ctx, id)
	if notFound(err, codeSchema) {
		c.unknown.add(id)
		return Source{}, &UnknownSchemaError{ID: id}
	}
	if err != nil {
		return Source{}, unavailable(op, err)
	}
	if fetched.Type != sr.TypeAvro {
		return Source{}, unusable(id, "it is a "+fetched.Type.String()+" schema, only Avro is read")
	}
	source := Source{Text: fetched.Schema}
	seen := map[string]bool{}
	if err := c.references(ctx, fetched.References, &source, seen, 0); err != nil {
		return Source{}, err
	}
	if len(seen) > maxReferences {
		return Source{}, unusable(id, "it has too many references")
	}
	return source, nil
}

func parseWriterSource(id int, source Source) (*writer, error) {
	schema, err := parse(source)
	if err != nil {
		return nil, unusable(id, err.Error())
	}
	w, err := newWriter(id, schema)
	if err != nil {
		return nil, unusable(id, err.Error())
	}
	return w, nil
}

func unusable(id int, detail string) error {
	return &DecodeError{Reason: ReasonSchema, SchemaID: id, Offset: -1, Detail: detail}
}

// references appends the texts of refs to source, those they need first.
func (c *Client) references(ctx context.Context, refs []sr.SchemaReference, source *Source, seen map[string]bool, depth int) error {
	if depth > maxReferenceDepth {
		return nil // the parse will name what is missing
	}
	for _, ref := range refs {
		op := "subject " + ref.Subject + " version " + strconv.Itoa(ref.Version)
		if seen[op] || len(seen) > maxReferences {
			continue
		}
		seen[op] = true
		found, err := c.sr.SchemaByVersion(ctx, ref.Subject, ref.Version)
		if err != nil {
			return unavailable(op, err)
		}
		if err := c.references(ctx, found.References, source, seen, depth+1); err != nil {
			return err
		}
		source.References = append(source.References, found.Schema.Schema)
	}
	return nil
}

// maxUnknown bounds the memory that ids from hostile records can take.
const maxUnknown = 1024

// unknownIDs remembers for a short time which ids the registry did not know.
type unknownIDs struct {
	ttl time.Duration
	mu  sync.Mutex
	ids map[int]time.Time
}

func (u *unknownIDs) has(id int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, ok := u.ids[id]
	if ok && time.Since(at) >= u.ttl {
		delete(u.ids, id)
		return false
	}
	return ok
}

func (u *unknownIDs) add(id int) {
	if u.ttl < 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil || len(u.ids) >= maxUnknown {
		u.ids = make(map[int]time.Time)
	}
	u.ids[id] = time.Now()
}
