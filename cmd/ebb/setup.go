package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/consumers/endpoint"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/internal/kafkarun"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/schemas"
)

type migrateCmd struct {
	where
	Slot string `help:"Name of the replication slot." default:"ebb_outbox"`
}

func (c *migrateCmd) Run(e *env) error {
	if err := c.fill(false, false); err != nil {
		return err
	}
	done, err := migrate(e.ctx, c.DSN, c.Slot)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "database is up to date; publication made: %t, slot made: %t\n", done.PublicationCreated, done.SlotCreated)
	return nil
}

type topicsCmd struct {
	Apply topicsApplyCmd `cmd:"" help:"Create the topics that are missing."`
}

type topicsApplyCmd struct {
	where
	Partitions  int32 `help:"Partitions of new topics." default:"12"`
	Replication int16 `help:"Copies of each partition; 0 takes the broker's default." default:"0"`
}

func (c *topicsApplyCmd) Run(e *env) error {
	if err := c.fill(true, false); err != nil {
		return err
	}
	results, err := kafkarun.EnsureTopics(e.ctx, c.Brokers, topicSpecs(c.Partitions, c.Replication))
	if err != nil {
		return err
	}
	for _, r := range results {
		state := "exists"
		if r.Created {
			state = "created"
		}
		fmt.Fprintf(e.stdout, "%-28s %s, %d partitions\n", r.Name, state, r.Partitions)
		for _, d := range r.Differences() {
			fmt.Fprintf(e.stdout, "%-28s   differs: %s\n", "", d)
		}
	}
	return nil
}

// topicSpecs are the topics of the pipeline. Records of events are kept for a week; what a journal can be rebuilt from, for a month.
func topicSpecs(partitions int32, replication int16) []kafkarun.TopicSpec {
	const week, month = "604800000", "2592000000"
	kept := func(name, ms string) kafkarun.TopicSpec {
		return kafkarun.TopicSpec{Name: name, Partitions: partitions, ReplicationFactor: replication,
			Configs: map[string]string{"retention.ms": ms, "cleanup.policy": "delete"}}
	}
	return []kafkarun.TopicSpec{
		kept(schemas.TopicOrder, week), kept(schemas.TopicCompensation, week), kept(schemas.TopicSaga, month),
		kept(schemas.TopicStep, month), kept(schemas.TopicDeadLetter, month),
	}
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
	for _, m := range schemas.Messages() {
		fmt.Fprintf(e.stdout, "%-64s version %d follows all before it\n", m.Subject, m.Version)
	}
	if len(c.Registry) == 0 {
		return nil
	}
	registry, err := schemas.NewClient(schemas.ClientConfig{URLs: c.Registry, Logger: e.log})
	if err != nil {
		return &usageError{err}
	}
	defer registry.Close()
	if err := registry.Check(e.ctx); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "the registry has nothing that speaks against them")
	return nil
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
	list, err := registry.Register(e.ctx)
	if err != nil {
		return err
	}
	for _, r := range list {
		fmt.Fprintf(e.stdout, "%-64s id %d, version %d, new: %t\n", r.Subject, r.ID, r.Version, r.New)
	}
	return nil
}

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Check destination files and print every problem."`
	Apply configApplyCmd `cmd:"" help:"Register destination files as the whole set, and show what changes."`
}

type configCheckCmd struct {
	Dir string `arg:"" help:"Folder of destination files." default:"${destinations}" type:"path"`
}

func (c *configCheckCmd) Run(e *env) error {
	set, err := spec.LoadDir(c.Dir)
	if err != nil {
		return &usageError{err}
	}
	for _, s := range set {
		fmt.Fprintf(e.stdout, "%s: ok, on %v, after %v\n", s.File, s.Rules().EventTypes, s.Rules().After)
		for _, w := range s.Warnings() {
			fmt.Fprintf(e.stdout, "warning: %s\n", w)
		}
	}
	return nil
}

type configApplyCmd struct {
	where
	Dir    string `arg:"" help:"Folder of destination files." default:"${destinations}" type:"path"`
	From   string `help:"Where a new destination begins: now or earliest." enum:"now,earliest" default:"now"`
	DryRun bool   `help:"Only show what would change."`
}

func (c *configApplyCmd) Run(e *env) error {
	if err := c.fill(true, true); err != nil {
		return err
	}
	set, err := spec.LoadDir(c.Dir)
	if err != nil {
		return &usageError{err}
	}
	s, err := e.open(e.ctx, c.where, 2)
	if err != nil {
		return err
	}
	defer s.close()
	from := journal.FromNow
	if c.From == "earliest" {
		from = journal.FromEarliest
	}
	changes, err := applyDestinations(e.ctx, s.store, set, c.Brokers, from, c.DryRun)
	for _, ch := range changes {
		fmt.Fprintf(e.stdout, "%-20s %s, version %d\n", ch.Name, ch.Action, ch.Version)
	}
	if errors.Is(err, journal.ErrEmptyPlan) {
		return &usageError{err}
	}
	return err
}

// applyDestinations registers the files, with the ends of the order topic as the start of new versions.
func applyDestinations(ctx context.Context, store *journal.Store, set []*spec.Spec, brokers []string, from journal.From, dry bool) ([]journal.Change, error) {
	list := make([]journal.Destination, len(set))
	for i, s := range set {
		list[i] = endpoint.Destination(s)
	}
	ends := func(ctx context.Context) (map[journal.TopicPartition]int64, error) {
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
		if err != nil {
			return nil, err
		}
		defer client.Close()
		offsets, err := kadm.NewClient(client).ListEndOffsets(ctx, schemas.TopicOrder)
		if err != nil {
			return nil, err
		}
		out := map[journal.TopicPartition]int64{}
		offsets.Each(func(o kadm.ListedOffset) {
			if o.Err != nil {
				err = fmt.Errorf("topic %s partition %d: %w; create it with `ebb topics apply`", o.Topic, o.Partition, o.Err)
			}
			out[journal.TopicPartition{Topic: o.Topic, Partition: o.Partition}] = o.Offset
		})
		return out, err
	}
	return store.Apply(ctx, list, ends, from, dry)
}
