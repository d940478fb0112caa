package kafkarun

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/ebbline/ebb/schemas"
)

// maxReferenceDepth bounds the chain of references of a schema.
const maxReferenceDepth = 16

// judge returns nil if the schema in body may be added to the subject, else
// the reply to give: 422 for a schema that is none, 409 with the reason for
// one that breaks compatibility.
func (g *gate) judge(subject string, body []byte) *reply {
	candidate, refused := g.candidate(body)
	if refused != nil {
		return refused
	}
	level, ok := g.level(subject, "")
	if !ok {
		return refuse(http.StatusInternalServerError, 50001, "the compatibility level cannot be read")
	}
	if conflict := g.conflict(subject, candidate, level); conflict != "" {
		return refuse(http.StatusConflict, 409, conflict)
	}
	return nil
}

// check answers whether a schema could be added, without adding it.
func (g *gate) check(r *http.Request, subject string, body []byte) *reply {
	if asked := g.ask(r); asked.status >= 300 {
		return asked
	}
	candidate, refused := g.candidate(body)
	if refused != nil {
		return refused
	}
	level, ok := g.level(subject, "")
	if !ok {
		return refuse(http.StatusInternalServerError, 50001, "the compatibility level cannot be read")
	}
	type verdict struct {
		Compatible bool     `json:"is_compatible"`
		Messages   []string `json:"messages,omitempty"`
	}
	if conflict := g.conflict(subject, candidate, level); conflict != "" {
		return answer(http.StatusOK, verdict{Messages: []string{conflict}})
	}
	return answer(http.StatusOK, verdict{Compatible: true})
}

func (g *gate) candidate(body []byte) (schemas.Source, *reply) {
	var s sr.Schema
	if err := json.Unmarshal(body, &s); err != nil {
		return schemas.Source{}, refuse(http.StatusUnprocessableEntity, 42201, "the request body is not a schema request")
	}
	if s.Type != sr.TypeAvro {
		return schemas.Source{}, refuse(http.StatusUnprocessableEntity, 42201, "this registry holds Avro schemas only")
	}
	source, err := g.source(s)
	if err == nil {
		err = schemas.Validate(source)
	}
	if err != nil {
		return schemas.Source{}, refuse(http.StatusUnprocessableEntity, 42201, "invalid Avro schema: "+err.Error())
	}
	return source, nil
}

// conflict compares the candidate with the versions that the level names and
// returns why it may not be added, or "".
func (g *gate) conflict(subject string, candidate schemas.Source, level sr.CompatibilityLevel) string {
	if level == sr.CompatNone {
		return ""
	}
	versions := g.versions(subject)
	if level == sr.CompatBackward || level == sr.CompatForward || level == sr.CompatFull {
		versions = versions[max(len(versions)-1, 0):]
	}
	backward := level != sr.CompatForward && level != sr.CompatForwardTransitive
	forward := level != sr.CompatBackward && level != sr.CompatBackwardTransitive
	for i := len(versions) - 1; i >= 0; i-- {
		v := versions[i]
		before, err := g.source(v.Schema)
		if err == nil && backward {
			if err = schemas.CanRead(candidate, before); err != nil {
				err = fmt.Errorf("the new schema cannot read data of version %d: %w", v.Version, err)
			}
		}
		if err == nil && forward {
			if err = schemas.CanRead(before, candidate); err != nil {
				err = fmt.Errorf("version %d cannot read data of the new schema: %w", v.Version, err)
			}
		}
		if err != nil {
			return fmt.Sprintf("schema is incompatible with an earlier schema for subject %q (level %s): %v", subject, level, err)
		}
	}
	return ""
}

// versions gives the schemas of a subject, oldest first.
func (g *gate) versions(subject string) []sr.SubjectSchema {
	var numbers []int
	if got := g.get("/subjects/" + url.PathEscape(subject) + "/versions"); got.status != http.StatusOK || got.decode(&numbers) != nil {
		return nil
	}
	var out []sr.SubjectSchema
	for _, n := range numbers {
		if s, ok := g.version(subject, n); ok {
			out = append(out, s)
		}
	}
	return out
}

func (g *gate) version(subject string, n int) (sr.SubjectSchema, bool) {
	var s sr.SubjectSchema
	got := g.get("/subjects/" + url.PathEscape(subject) + "/versions/" + strconv.Itoa(n))
	ok := got.status == http.StatusOK && got.decode(&s) == nil
	return s, ok
}

// source collects a schema and what it refers to.
func (g *gate) source(s sr.Schema) (schemas.Source, error) {
	out := schemas.Source{Text: s.Schema}
	err := g.references(s.References, &out, map[string]bool{}, 0)
	return out, err
}

func (g *gate) references(refs []sr.SchemaReference, out *schemas.Source, seen map[string]bool, depth int) error {
	if depth > maxReferenceDepth {
		return fmt.Errorf("references are nested deeper than %d", maxReferenceDepth)
	}
	for _, ref := range refs {
		key := fmt.Sprintf("%s version %d", ref.Subject, ref.Version)
		if seen[key] {
			continue
		}
		seen[key] = true
		found, ok := g.version(ref.Subject, ref.Version)
		if !ok {
			return fmt.Errorf("the referenced schema %s does not exist", key)
		}
		if err := g.references(found.References, out, seen, depth+1); err != nil {
			return err
		}
		out.References = append(out.References, found.Schema.Schema)
	}
	return nil
}
