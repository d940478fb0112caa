package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/consumers/endpoint"
	"github.com/ebbline/ebb/destination/seal"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/internal/kafkarun"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/schemas"
)

type migrateCmd struct {
	where
	Slot   string   `help:"Name of the replication slot." default:"ebb_outbox"`
	Outbox []string `help:"Publish this outbox too, made by producer/outbox; it must exist." placeholder:"SCHEMA.TABLE"`
}

func (c *migrateCmd) Run(e *env) error {
	if err := c.fill(false, false); err != nil {
		return err
	}
	done, err := migrate(e.ctx, c.DSN, c.Slot, c.Outbox...)
	if err != nil {
		return err
	}
	return one(e, migrated{done.PublicationCreated, done.SlotCreated}, func(w io.Writer, m migrated) {
		fmt.Fprintf(w, "database is up to date; publication made: %t, slot made: %t\n", m.Publication, m.Slot)
	})
}

// migrated says what `ebb migrate` has made beside the tables.
type migrated struct {
	Publication bool `json:"publicationMade"`
	Slot        bool `json:"slotMade"`
}

type topicsCmd struct {
	Apply topicsApplyCmd `cmd:"" help:"Create the topics that are missing."`
}

type topicsApplyCmd struct {
	where
	Partitions  int32    `help:"Partitions of new topics." default:"12"`
	Replication int16    `help:"Copies of each partition; 0 takes the broker's default." default:"0"`
	Aggregate   []string `help:"Create the topic of this aggregate type too, for an outbox of your own." placeholder:"TYPE"`
}

func (c *topicsApplyCmd) Run(e *env) error {
	if err := c.fill(true, false); err != nil {
		return err
	}
	results, err := kafkarun.EnsureTopics(e.ctx, c.Brokers, topicSpecs(c.Partitions, c.Replication, c.Aggregate...))
	if err != nil {
		return err
	}
	topics := make([]appliedTopic, len(results))
	for i, r := range results {
		topics[i] = appliedTopic{r.Name, r.Created, r.Partitions, []string{}}
		for _, d := range r.Differences() {
			topics[i].Differences = append(topics[i].Differences, fmt.Sprint(d))
		}
	}
	return list(e, topics, func(w io.Writer, topics []appliedTopic) {
		for _, t := range topics {
			state := "exists"
			if t.Created {
				state = "created"
			}
			fmt.Fprintf(w, "%-28s %s, %d partitions\n", t.Name, state, t.Partitions)
			for _, d := range t.Differences {
				fmt.Fprintf(w, "%-28s   differs: %s\n", "", d)
			}
		}
	})
}

type appliedTopic struct {
	Name       string `json:"name"`
	Created    bool   `json:"created"`
	Partitions int32  `json:"partitions"`
	// Differences from what is wanted; they are left as they are.
	Differences []string `json:"differences"`
}

// topicSpecs are the topics of the pipeline. Records of events are kept for a week; what a journal can be rebuilt from, for a month.
func topicSpecs(partitions int32, replication int16, aggregates ...string) []kafkarun.TopicSpec {
	const week, month = "604800000", "2592000000"
	kept := func(name, ms string) kafkarun.TopicSpec {
		return kafkarun.TopicSpec{Name: name, Partitions: partitions, ReplicationFactor: replication,
			Configs: map[string]string{"retention.ms": ms, "cleanup.policy": "delete"}}
	}
	out := []kafkarun.TopicSpec{
		kept(schemas.TopicOrder, week), kept(schemas.TopicCompensation, week), kept(schemas.TopicSaga, month),
		kept(schemas.TopicStep, month), kept(schemas.TopicDeadLetter, month),
	}
	for _, a := range aggregates {
		out = append(out, kept(schemas.TopicPrefix+a, week))
	}
	return out
}

type schemasCmd struct {
	Apply schemasApplyCmd `cmd:"" help:"Register the schemas of all events."`
	Check schemasCheckCmd `cmd:"" help:"Check the schemas of this release against all released ones, and against a registry's if one is given; changes nothing."`
}

type schemasCheckCmd struct {
	Registry []string `help:"Schema registry URLs." env:"EBB_REGISTRY_URL" placeholder:"URL"`
}

func (c *schemasCheckCmd) Run(e *env) error {
	if err := schemas.CheckReleased(); err != nil {
		return err
	}
	var checked []checkedSchema
	for _, m := range schemas.Messages() {
		checked = append(checked, checkedSchema{m.Subject, m.Version})
	}
	err := list(e, checked, func(w io.Writer, checked []checkedSchema) {
		for _, m := range checked {
			fmt.Fprintf(w, "%-64s version %d follows all before it\n", m.Subject, m.Version)
		}
	})
	if err != nil || len(c.Registry) == 0 {
		return err
	}
	registry, err := schemas.NewClient(schemas.ClientConfig{URLs: c.Registry, Logger: e.log})
	if err != nil {
		return &usageError{err}
	}
	defer registry.Close()
	if err := registry.Check(e.ctx); err != nil {
		return err
	}
	if !e.json {
		fmt.Fprintln(e.stdout, "the registry has nothing that speaks against them")
	}
	return nil
}

type checkedSchema struct {
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

type schemasApplyCmd struct{ where }

func (c *schemasApplyCmd) Run(e *env) error {
	if c.DSN == "" {
		c.DSN = "unused"
	}
	if err := c.fill(false, true); err != nil {
		return err
	}
	registry, err := schemas.NewClient(schemas.ClientConfig{URLs: c.Registry, Logger: e.log})
	if err != nil {
		return &usageError{err}
	}
	defer registry.Close()
	found, err := registry.Register(e.ctx)
	if err != nil {
		return err
	}
	registered := make([]registeredSchema, len(found))
	for i, r := range found {
		registered[i] = registeredSchema{r.Subject, r.ID, r.Version, r.New}
	}
	return list(e, registered, func(w io.Writer, registered []registeredSchema) {
		for _, r := range registered {
			fmt.Fprintf(w, "%-64s id %d, version %d, new: %t\n", r.Subject, r.ID, r.Version, r.New)
		}
	})
}

type registeredSchema struct {
	Subject string `json:"subject"`
	ID      int    `json:"id"`
	Version int    `json:"version"`
	New     bool   `json:"new"`
}

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Check destination files and print every problem."`
	Apply configApplyCmd `cmd:"" help:"Register destination files as the whole set, and show what changes."`
}

type configCheckCmd struct {
	Dir string `arg:"" help:"Folder of destination files; problems name it as it is given." default:"${destinations}"`
}

// Help says what is printed.
func (configCheckCmd) Help() string {
	return `Every problem has its place as file:line:column. With --json each is a document with file, line, column, message and suggestion.

Example:

  ebb config check consumers/destinations`
}

func (c *configCheckCmd) Run(e *env) error {
	set, err := loadForCheck(c.Dir)
	if err != nil {
		return e.problems(err)
	}
	files := make([]checkedFile, len(set))
	for i, s := range set {
		files[i] = checkedFile{s.File, s.Name, orNone(s.Rules().EventTypes), orNone(s.Rules().After), []fileProblem{}}
		for _, w := range s.Warnings() {
			files[i].Warnings = append(files[i].Warnings, fileProblem(w))
		}
	}
	return list(e, files, func(w io.Writer, files []checkedFile) {
		for _, f := range files {
			fmt.Fprintf(w, "%s: ok, on %v, after %v\n", f.File, f.On, f.After)
			for _, p := range f.Warnings {
				fmt.Fprintf(w, "warning: %s\n", spec.Problem(p))
			}
		}
	})
}

// checkedFile is a destination file that is right.
type checkedFile struct {
	File        string        `json:"file"`
	Destination string        `json:"destination"`
	On          []string      `json:"on"`
	After       []string      `json:"after"`
	Warnings    []fileProblem `json:"warnings"`
}

// fileProblem is a spec.Problem as JSON.
type fileProblem struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
}

// problems makes what is wrong with destination files an error of the command line; with --json each problem is a document of its own.
func (e *env) problems(err error) error {
	var found *spec.Problems
	if !e.json || !errors.As(err, &found) {
		return &usageError{err}
	}
	for _, p := range found.List {
		if err := e.line(fileProblem(p)); err != nil {
			return err
		}
	}
	return &usageError{fmt.Errorf("%d problems in the destination files", len(found.List))}
}

func orNone(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

// loadForCheck reads a folder and checks what only shows in this environment too.
func loadForCheck(dir string) ([]*spec.Spec, error) {
	set, err := spec.LoadDir(dir)
	if err != nil {
		return nil, err
	}
	ring, err := seal.Parse(os.Getenv(seal.Env))
	if err != nil {
		return nil, err
	}
	if ring.IsZero() {
		return set, spec.CheckSealed(set)
	}
	return set, nil
}

type configApplyCmd struct {
	where
	Dir    string `arg:"" help:"Folder of destination files." default:"${destinations}" type:"path"`
	From   string `help:"Where a new destination begins: now, earliest, or a time such as 2026-11-30T08:00:00Z." default:"now" placeholder:"WHEN"`
	DryRun bool   `help:"Only show what would change."`
}

func (c *configApplyCmd) Run(e *env) error {
	if err := c.fill(true, true); err != nil {
		return err
	}
	set, err := spec.LoadDir(c.Dir)
	if err != nil {
		return e.problems(err)
	}
	s, err := e.open(e.ctx, c.where, 2)
	if err != nil {
		return err
	}
	defer s.close()
	from, err := c.from()
	if err != nil {
		return &usageError{err}
	}
	changes, err := applyDestinations(e.ctx, s.store, set, c.Brokers, from, c.DryRun)
	printErr := list(e, appliedChanges(changes), func(w io.Writer, changes []appliedChange) {
		for _, ch := range changes {
			fmt.Fprintf(w, "%-20s %s, version %d\n", ch.Name, ch.Action, ch.Version)
		}
	})
	if errors.Is(err, journal.ErrEmptyPlan) {
		return &usageError{err}
	}
	return errors.Join(err, printErr)
}

// from reads --from. A moment is that of the records' timestamps.
func (c *configApplyCmd) from() (journal.From, error) {
	switch c.From {
	case "now":
		return journal.FromNow, nil
	case "earliest":
		return journal.FromEarliest, nil
	}
	at, err := time.Parse(time.RFC3339, c.From)
	if err != nil {
		return journal.From{}, fmt.Errorf("--from: %d characters that are neither now, nor earliest, nor a time; write for example --from 2026-11-30T08:00:00Z", len(c.From))
	}
	return journal.FromOffsets(consumers.OffsetsAt(at, c.Brokers, nil, schemas.TopicOrder)), nil
}

// appliedChange is what became of a destination's file.
type appliedChange struct {
	Name    string `json:"name"`
	Action  string `json:"action"`
	Version int    `json:"version"`
}

func appliedChanges(changes []journal.Change) []appliedChange {
	out := make([]appliedChange, len(changes))
	for i, ch := range changes {
		out[i] = appliedChange{ch.Name, string(ch.Action), ch.Version}
	}
	return out
}

// applyDestinations registers the files, with the ends of the order topic as the start of new versions.
func applyDestinations(ctx context.Context, store *journal.Store, set []*spec.Spec, brokers []string, from journal.From, dry bool) ([]journal.Change, error) {
	list := make([]journal.Destination, len(set))
	for i, s := range set {
		list[i] = endpoint.Destination(s)
	}
	return store.Apply(ctx, list, consumers.EndOffsets(brokers, nil, schemas.TopicOrder), from, dry)
}
