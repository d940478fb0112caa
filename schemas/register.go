package schemas

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/twmb/franz-go/pkg/sr"
)

// Registration says what Register did for one event type.
type Registration struct {
	Subject string
	ID      int  // schema id
	Version int  // version within the subject
	New     bool // the version was added now
}

// Register puts the schemas of all our event types into the registry and sets
// their subjects to FULL_TRANSITIVE. It can be repeated: a schema that is
// there keeps its id. Before anything is changed, each schema is checked here
// against every version that the registry has, whatever the registry's own
// setting says; an [IncompatibleError] per conflict is joined and nothing is
// registered.
func (c *Client) Register(ctx context.Context) ([]Registration, error) {
	known, err := c.compare(ctx)
	if err != nil {
		return nil, err
	}
	messages := contract().messages
	done := make([]Registration, 0, len(messages))
	for i, m := range messages {
		r, err := c.register(ctx, m, known[i])
		if err != nil {
			return done, err
		}
		done = append(done, r)
	}
	return done, nil
}

// Check compares the schemas of all our event types with every version that the registry has, and changes nothing. It joins an
// [IncompatibleError] per conflict; a subject that the registry does not have is no conflict.
func (c *Client) Check(ctx context.Context) error {
	_, err := c.compare(ctx)
	return err
}

// compare gives the registry's versions of every message.
func (c *Client) compare(ctx context.Context) ([][]sr.SubjectSchema, error) {
	messages := contract().messages
	known := make([][]sr.SubjectSchema, len(messages))
	var conflicts []error
	for i, m := range messages {
		versions, err := c.versions(ctx, m.Subject)
		if err != nil {
			return nil, err
		}
		known[i] = versions
		if err := conflict(m, versions); err != nil {
			conflicts = append(conflicts, err)
		}
	}
	return known, errors.Join(conflicts...)
}

func (c *Client) versions(ctx context.Context, subject string) ([]sr.SubjectSchema, error) {
	op := "versions of subject " + subject
	versions, err := c.sr.Schemas(ctx, subject)
	switch {
	case notFound(err, codeSubject, codeVersion):
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, unavailable(op, err)
	}
	return versions, nil
}

func conflict(m *message, versions []sr.SubjectSchema) error {
	for _, v := range versions {
		if err := Compatible(v.Schema.Schema, m.Schema); err != nil {
			return &IncompatibleError{Subject: m.Subject, Version: v.Version, Detail: err.Error()}
		}
	}
	return nil
}

func (c *Client) register(ctx context.Context, m *message, before []sr.SubjectSchema) (Registration, error) {
	op := "register subject " + m.Subject
	level := c.sr.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFullTransitive}, m.Subject)
	for _, r := range level {
		if r.Err != nil {
			return Registration{}, registryError(ctx, op, m.Subject, r.Err)
		}
	}
	created, err := c.sr.CreateSchema(ctx, m.Subject, sr.Schema{Schema: m.Schema})
	if err != nil {
		return Registration{}, registryError(ctx, op, m.Subject, err)
	}
	c.learn(m, created.ID)
	c.known.learnID(ctx, m, created.ID)
	r := Registration{Subject: m.Subject, ID: created.ID, Version: created.Version, New: true}
	for _, v := range before {
		if v.ID == created.ID && v.Version == created.Version {
			r.New = false
		}
	}
	return r, nil
}

func registryError(ctx context.Context, op, subject string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if reply, ok := errors.AsType[*sr.ResponseError](err); ok {
		switch reply.StatusCode {
		case http.StatusConflict:
			return &IncompatibleError{Subject: subject, Detail: reply.Message}
		case http.StatusUnprocessableEntity:
			return fmt.Errorf("%s: the registry refuses the schema: %s", op, reply.Message)
		}
	}
	return unavailable(op, err)
}
