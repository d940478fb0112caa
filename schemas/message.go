package schemas

import (
	"embed"
	"reflect"
	"slices"
	"sync"

	hamba "github.com/hamba/avro/v2"
	twmb "github.com/twmb/avro"
)

//go:embed avsc/*.avsc
var avscFiles embed.FS

// Message describes one of our event types.
type Message struct {
	EventType     string // value of the eventType header, for example "OrderCreated"
	FullName      string // Avro full name, for example "ebb.OrderCreated"
	AggregateType string // for example "order"
	Topic         string // for example "outbox.event.order"
	Subject       string // registry subject
	Version       int    // current schema version, for the schemaVersion header
	Schema        string // Avro schema, JSON text
}

// Messages lists our event types, ordered by topic.
func Messages() []Message {
	all := contract().messages
	out := make([]Message, len(all))
	for i, m := range all {
		out[i] = m.Message
	}
	return out
}

// MessageOf describes the event type of v, one of the generated types or a
// pointer to one.
func MessageOf(v any) (Message, bool) {
	m := contract().byType[messageType(v)]
	if m == nil {
		return Message{}, false
	}
	return m.Message, true
}

// MessageNamed describes an event type by its name, with or without namespace.
func MessageNamed(name string) (Message, bool) {
	i := slices.IndexFunc(contract().messages, func(m *message) bool {
		return m.EventType == name || m.FullName == name
	})
	if i < 0 {
		return Message{}, false
	}
	return contract().messages[i].Message, true
}

// message is a Message with everything needed to encode and decode it.
type message struct {
	Message
	goType reflect.Type // the struct, not a pointer
	writer hamba.Schema
	reader *twmb.Schema
	check  checkFunc
}

type contractTable struct {
	messages []*message
	byType   map[reflect.Type]*message
	byName   map[string]*message // by full name
}

// contract parses the embedded schemas once. It panics if they are broken,
// which no input can cause: the files are part of the program.
var contract = sync.OnceValue(func() *contractTable {
	t := &contractTable{byType: map[reflect.Type]*message{}, byName: map[string]*message{}}
	add := func(aggregate, event string, v any) {
		text, err := avscFiles.ReadFile("avsc/" + event + ".avsc")
		if err != nil {
			panic(err)
		}
		full, topic := Namespace+"."+event, TopicPrefix+aggregate
		m := &message{
			Message: Message{
				EventType: event, FullName: full, AggregateType: aggregate, Topic: topic,
				Subject: Subject(topic, full), Version: versionOf(Subject(topic, full), string(text)), Schema: string(text),
			},
			goType: reflect.TypeOf(v),
			writer: parseWriter(text),
			reader: twmb.MustParse(string(text)),
		}
		m.check = checkOf(m.reader.Root(), m.goType)
		t.messages = append(t.messages, m)
		t.byType[m.goType] = m
		t.byName[m.FullName] = m
	}
	add(AggregateOrder, EventOrderCreated, OrderCreated{})
	add(AggregateOrder, EventOrderStatusUpdated, OrderStatusUpdated{})
	add(AggregateOrder, EventOrderCancelled, OrderCancelled{})
	add(AggregateCompensation, EventCompensationRequested, CompensationRequested{})
	add(AggregateSaga, EventSagaCompleted, SagaCompleted{})
	add(AggregateSaga, EventSagaCompensated, SagaCompensated{})
	add(AggregateSaga, EventSagaParked, SagaParked{})
	add(AggregateSaga, EventSagaResumed, SagaResumed{})
	add(AggregateStep, EventStepSucceeded, StepSucceeded{})
	add(AggregateStep, EventStepFailed, StepFailed{})
	add(AggregateStep, EventStepUndone, StepUndone{})
	add(AggregateDeadLetter, EventDeadLettered, DeadLettered{})
	return t
})

// versionOf is the number of the newest release, or the next one while the schema is not released yet.
func versionOf(subject, schema string) int {
	all := Releases(subject)
	if n := len(all); n > 0 && sameText(all[n-1].Schema, schema) {
		return n
	}
	return len(all) + 1
}

// parseWriter parses with a cache of its own: several files define the same
// nested record.
func parseWriter(text []byte) hamba.Schema {
	schema, err := hamba.ParseBytesWithCache(text, "", &hamba.SchemaCache{})
	if err != nil {
		panic(err)
	}
	return schema
}

func messageType(v any) reflect.Type {
	t := reflect.TypeOf(v)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
