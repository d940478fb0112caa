package schemas

// Topics, as the outbox router names them: the prefix and the aggregate type.
const (
	TopicPrefix = "outbox.event."

	TopicOrder        = TopicPrefix + AggregateOrder
	TopicCompensation = TopicPrefix + AggregateCompensation
	TopicSaga         = TopicPrefix + AggregateSaga
	TopicStep         = TopicPrefix + AggregateStep
	TopicDeadLetter   = TopicPrefix + AggregateDeadLetter
)

// Aggregate types: the outbox column that picks the topic.
const (
	AggregateOrder        = "order"
	AggregateCompensation = "compensation"
	AggregateSaga         = "saga"
	AggregateStep         = "step"
	AggregateDeadLetter   = "deadletter"
)

// Record headers. Values are text in UTF-8.
const (
	HeaderID               = "id"               // event id, a UUID
	HeaderEventType        = "eventType"        // one of the Event constants, for our own topics
	HeaderAggregateVersion = "aggregateVersion" // decimal digits
	HeaderSchemaVersion    = "schemaVersion"    // decimal digits
	HeaderTraceParent      = "traceparent"      // W3C trace context
)

// Event types: the value of HeaderEventType and the name of the Avro record.
const (
	EventOrderCreated          = "OrderCreated"
	EventOrderStatusUpdated    = "OrderStatusUpdated"
	EventOrderCancelled        = "OrderCancelled"
	EventCompensationRequested = "CompensationRequested"
	EventSagaCompleted         = "SagaCompleted"
	EventSagaCompensated       = "SagaCompensated"
	EventSagaParked            = "SagaParked"
	EventSagaResumed           = "SagaResumed"
	EventStepSucceeded         = "StepSucceeded"
	EventStepFailed            = "StepFailed"
	EventStepUndone            = "StepUndone"
	EventDeadLettered          = "DeadLettered"
)

// Namespace is the Avro namespace of our records.
const Namespace = "ebb"

// Subject names the registry subject of a record type in a topic. It follows
// the topic-and-record strategy, so that the types of one topic evolve on
// their own and one type may differ between topics. fullName includes the
// Avro namespace: Subject("outbox.event.order", "ebb.OrderCreated") is
// "outbox.event.order-ebb.OrderCreated".
func Subject(topic, fullName string) string { return topic + "-" + fullName }
