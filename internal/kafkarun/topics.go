package kafkarun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TopicSpec is a topic that has to exist.
type TopicSpec struct {
	Name              string
	Partitions        int32             // at least 1; only used to create the topic
	ReplicationFactor int16             // zero: the broker's default
	Configs           map[string]string // topic settings, for example "retention.ms"
}

// TopicResult says how a topic is, compared with its spec.
type TopicResult struct {
	Name       string
	Created    bool
	Partitions int32          // partitions it has
	Wanted     int32          // partitions of the spec
	Configs    []ConfigResult // settings that differ, by key
}

// ConfigResult is a setting that differs from the spec.
type ConfigResult struct {
	Key, Wanted, Have string
}

// Differences says in words what was found and left as it is, with what to do
// about it. It is empty if the topic is as specified.
func (r TopicResult) Differences() []string {
	var out []string
	if r.Partitions != r.Wanted {
		out = append(out, fmt.Sprintf("topic %s has %d partitions, the configuration says %d: the number is left alone, because keys would move to other partitions",
			r.Name, r.Partitions, r.Wanted))
	}
	for _, c := range r.Configs {
		out = append(out, fmt.Sprintf("topic %s has %s=%s, the configuration says %s: change it with kafka-configs if it is not meant so",
			r.Name, c.Key, c.Have, c.Wanted))
	}
	return out
}

// visibleTimeout bounds the wait for a new topic to be known to the cluster.
const visibleTimeout = 30 * time.Second

// EnsureTopics creates the topics that are missing and waits until they can be
// used. It never changes a topic that exists; the results, in the order of the
// specs, say what differs. It can be repeated and run at several places at
// once. opts are for the connection, such as TLS and SASL.
func EnsureTopics(ctx context.Context, brokers []string, specs []TopicSpec, opts ...kgo.Opt) ([]TopicResult, error) {
	if err := checkSpecs(brokers, specs); err != nil {
		return nil, fmt.Errorf("topics: %w", err)
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.MetadataMinAge(50 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("topics: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)

	existing, err := listTopics(ctx, admin, specs)
	if err != nil {
		return nil, err
	}
	created := map[string]bool{}
	for _, spec := range specs {
		if existing.Has(spec.Name) {
			continue
		}
		if created[spec.Name], err = createTopic(ctx, admin, spec); err != nil {
			return nil, err
		}
	}
	if existing, err = waitVisible(ctx, admin, specs, existing); err != nil {
		return nil, err
	}
	return compare(ctx, admin, specs, existing, created)
}

func checkSpecs(brokers []string, specs []TopicSpec) error {
	var errs []error
	if len(brokers) == 0 {
		errs = append(errs, errors.New("no broker address"))
	}
	seen := map[string]bool{}
	for i, s := range specs {
		switch {
		case s.Name == "":
			errs = append(errs, fmt.Errorf("topic %d has no name", i+1))
		case seen[s.Name]:
			errs = append(errs, fmt.Errorf("topic %s is given twice", s.Name))
		case s.Partitions < 1:
			errs = append(errs, fmt.Errorf("topic %s: %d partitions, at least 1 is needed", s.Name, s.Partitions))
		case s.ReplicationFactor < 0:
			errs = append(errs, fmt.Errorf("topic %s: replication factor %d is negative", s.Name, s.ReplicationFactor))
		}
		seen[s.Name] = true
	}
	return errors.Join(errs...)
}

// listTopics gives the topics of specs that exist.
func listTopics(ctx context.Context, admin *kadm.Client, specs []TopicSpec) (kadm.TopicDetails, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	details, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("topics: list: %w; check the broker addresses and that Kafka runs", err)
	}
	for name, d := range details {
		switch {
		case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			delete(details, name)
		case d.Err != nil:
			return nil, fmt.Errorf("topics: %s: %w", name, d.Err)
		}
	}
	return details, nil
}

// createTopic reports false if somebody else created the topic meanwhile.
func createTopic(ctx context.Context, admin *kadm.Client, spec TopicSpec) (bool, error) {
	factor := spec.ReplicationFactor
	if factor == 0 {
		factor = -1
	}
	configs := make(map[string]*string, len(spec.Configs))
	for k, v := range spec.Configs {
		configs[k] = &v
	}
	_, err := admin.CreateTopic(ctx, spec.Partitions, factor, configs, spec.Name)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, kerr.TopicAlreadyExists):
		return false, nil
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return false, fmt.Errorf("topics: create %s: replication factor %d: %w; there are fewer brokers than replicas", spec.Name, spec.ReplicationFactor, err)
	}
	return false, fmt.Errorf("topics: create %s: %w", spec.Name, err)
}

// waitVisible waits until every topic has leaders for all its partitions: a
// new topic is not known to all brokers at once.
func waitVisible(ctx context.Context, admin *kadm.Client, specs []TopicSpec, have kadm.TopicDetails) (kadm.TopicDetails, error) {
	ctx, cancel := context.WithTimeout(ctx, visibleTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for first := true; ; first = false {
		missing := ""
		for _, s := range specs {
			if !usable(have[s.Name]) {
				missing = s.Name
				break
			}
		}
		if missing == "" {
			return have, nil
		}
		if !first {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil, fmt.Errorf("topics: %s was created and has no leader yet: %w", missing, ctx.Err())
			}
		}
		var err error
		if have, err = listTopics(ctx, admin, specs); err != nil {
			return nil, err
		}
	}
}

func usable(d kadm.TopicDetail) bool {
	for _, p := range d.Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return len(d.Partitions) > 0
}

func compare(ctx context.Context, admin *kadm.Client, specs []TopicSpec, have kadm.TopicDetails, created map[string]bool) ([]TopicResult, error) {
	results := make([]TopicResult, 0, len(specs))
	for _, s := range specs {
		r := TopicResult{Name: s.Name, Created: created[s.Name], Partitions: int32(len(have[s.Name].Partitions)), Wanted: s.Partitions}
		if len(s.Configs) > 0 {
			described, err := admin.DescribeTopicConfigs(ctx, s.Name)
			if err == nil {
				var on kadm.ResourceConfig
				on, err = described.On(s.Name, nil)
				err = errors.Join(err, on.Err)
				r.Configs = differing(s.Configs, on.Configs)
			}
			if err != nil {
				return nil, fmt.Errorf("topics: settings of %s: %w", s.Name, err)
			}
		}
		results = append(results, r)
	}
	return results, nil
}

func differing(wanted map[string]string, have []kadm.Config) []ConfigResult {
	values := make(map[string]string, len(have))
	for _, c := range have {
		values[c.Key] = c.MaybeValue()
	}
	var out []ConfigResult
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if values[key] != wanted[key] {
			out = append(out, ConfigResult{Key: key, Wanted: wanted[key], Have: values[key]})
		}
	}
	return out
}
