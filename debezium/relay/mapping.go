package relay

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Mapping says how a row becomes a record, in the terms of Debezium's EventRouter. Zero fields have the router's
// defaults.
type Mapping struct {
	// Tables are the outboxes, as schema.table. Rows of other published tables are passed over. Required.
	Tables []string
	// EventID is the column that becomes the header `id` (table.field.event.id). Empty: id.
	EventID string
	// EventKey is the column that becomes the record key (table.field.event.key). Empty: aggregateid.
	EventKey string
	// Payload is the bytea column that becomes the record value (table.field.event.payload). Empty: payload.
	Payload string
	// RouteBy is the text column that decides the topic (route.by.field). Empty: aggregatetype.
	RouteBy string
	// TopicRegex must match the whole text of RouteBy (route.topic.regex). Empty: (?<routedByValue>.*). A text that it
	// does not match is itself the topic.
	TopicRegex string
	// TopicReplacement replaces the first match (route.topic.replacement). Empty: outbox.event.${routedByValue}.
	TopicReplacement string
	// Placement is table.fields.additional.placement: a comma list of column:header, column:header:name and
	// column:partition. Headers follow `id` in this order. Values for `envelope` are refused: they would turn the
	// payload bytes into text.
	Placement string
	// IgnoreMissing leaves out a placed column that a table does not have (table.fields.additional.missing=ignore)
	// instead of failing.
	IgnoreMissing bool
}

// OutboxMapping is the mapping of Ebb's own outboxes.
func OutboxMapping(tables ...string) Mapping {
	return Mapping{
		Tables: tables,
		Placement: "type:header:eventType,version:header:aggregateVersion," +
			"schema_version:header:schemaVersion,traceparent:header",
	}
}

func (m Mapping) withDefaults() Mapping {
	for _, field := range []struct {
		value    *string
		fallback string
	}{
		{&m.EventID, "id"},
		{&m.EventKey, "aggregateid"},
		{&m.Payload, "payload"},
		{&m.RouteBy, "aggregatetype"},
		{&m.TopicRegex, `(?<routedByValue>.*)`},
		{&m.TopicReplacement, "outbox.event.${routedByValue}"},
	} {
		if *field.value == "" {
			*field.value = field.fallback
		}
	}
	return m
}

// placement is one entry of Mapping.Placement.
type placement struct {
	column    string
	header    string // name of the header
	partition bool   // the column is the partition number, not a header
}

// rules is a checked mapping.
type rules struct {
	Mapping
	placed []placement
	topics *topicRouter
}

func (m Mapping) compile() (*rules, error) {
	m = m.withDefaults()
	var problems []error
	if len(m.Tables) == 0 {
		problems = append(problems, errors.New("no tables: name the outboxes as schema.table"))
	}
	for _, table := range m.Tables {
		if schema, name, ok := strings.Cut(table, "."); !ok || schema == "" || name == "" {
			problems = append(problems, fmt.Errorf("table %q is not of the form schema.table", table))
		}
	}
	placed, err := parsePlacement(m.Placement)
	problems = append(problems, err)
	topics, err := newTopicRouter(m.TopicRegex, m.TopicReplacement)
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("mapping: %w", err)
	}
	return &rules{Mapping: m, placed: placed, topics: topics}, nil
}

// placesPartition says whether rows may choose their partition.
func (r *rules) placesPartition() bool {
	return slices.ContainsFunc(r.placed, func(p placement) bool { return p.partition })
}

func parsePlacement(list string) ([]placement, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	var placed []placement
	var problems []error
	for entry := range strings.SplitSeq(list, ",") {
		p, err := parsePlacementEntry(entry)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		placed = append(placed, p)
	}
	return placed, errors.Join(problems...)
}

func parsePlacementEntry(entry string) (placement, error) {
	parts := strings.Split(entry, ":")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return placement{}, fmt.Errorf("placement %q is not column:header, column:header:name or column:partition", entry)
	}
	p := placement{column: parts[0], header: parts[0]}
	if len(parts) == 3 {
		p.header = parts[2]
	}
	switch strings.ToLower(parts[1]) {
	case "header":
	case "partition":
		p.partition = true
	case "envelope":
		return placement{}, fmt.Errorf("placement %q: an envelope would turn the payload bytes into Base64 text; use header", entry)
	default:
		return placement{}, fmt.Errorf("placement %q: %q is neither header nor partition", entry, parts[1])
	}
	return p, nil
}

// topicRouter does what Kafka Connect's RegexRouter does.
type topicRouter struct {
	whole, part *regexp.Regexp
	template    string // in Go's form

	// prefix and suffix are set where the whole text is kept, which is the usual case and needs no regular expression.
	simple         bool
	prefix, suffix string
}

func newTopicRouter(pattern, replacement string) (*topicRouter, error) {
	part, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("topic regex: %w", err)
	}
	whole, err := regexp.Compile(`^(?:` + pattern + `)$`)
	if err != nil {
		return nil, fmt.Errorf("topic regex: %w", err)
	}
	template, err := goTemplate(part, replacement)
	if err != nil {
		return nil, err
	}
	r := &topicRouter{whole: whole, part: part, template: template}
	const all, reference = `(?<routedByValue>.*)`, "${routedByValue}"
	if pattern == all && strings.Count(replacement, "$") == 1 && !strings.Contains(replacement, `\`) {
		r.prefix, r.suffix, r.simple = strings.Cut(replacement, reference)
	}
	return r, nil
}

// topic gives the topic of a route value: the replacement of the first match if the whole value matches, else the value.
func (r *topicRouter) topic(value string) string {
	if r.simple && !strings.ContainsAny(value, "\n\r\u0085\u2028\u2029") {
		return r.prefix + value + r.suffix
	}
	if !r.whole.MatchString(value) || (r.simple && strings.ContainsAny(value, "\r\u0085\u2028\u2029")) {
		return value
	}
	match := r.part.FindStringSubmatchIndex(value)
	if match == nil {
		return value
	}
	out := r.part.ExpandString(nil, r.template, value, match)
	return value[:match[0]] + string(out) + value[match[1]:]
}

// goTemplate rewrites a Java replacement text into Go's. Java takes as many digits after $ as make an existing group,
// names only in braces, and \ quotes the next character; Go knows ${…} for both and $$ for a dollar sign.
func goTemplate(re *regexp.Regexp, java string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(java); i++ {
		switch c := java[i]; c {
		case '\\':
			i++
			if i == len(java) {
				return "", errors.New("topic replacement ends in a backslash")
			}
			b.WriteString(strings.ReplaceAll(string(java[i]), "$", "$$"))
		case '$':
			group, n := javaGroup(re, java[i+1:])
			if n == 0 {
				return "", fmt.Errorf("topic replacement %q: the $ at byte %d names no group of the regex", java, i)
			}
			b.WriteString("${" + group + "}")
			i += n
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// javaGroup reads a group reference after the dollar sign and gives it with its length, 0 if there is none.
func javaGroup(re *regexp.Regexp, rest string) (string, int) {
	if name, ok := strings.CutPrefix(rest, "{"); ok {
		name, _, closed := strings.Cut(name, "}")
		if !closed || re.SubexpIndex(name) < 0 {
			return "", 0
		}
		return name, len(name) + 2
	}
	n, value := 0, 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		next := value*10 + int(rest[n]-'0')
		if next > re.NumSubexp() {
			break
		}
		value, n = next, n+1
	}
	return rest[:n], n
}
