package schemas

import "strings"

// SagaEvent is the common shape of the four saga events.
type SagaEvent SagaCompleted

// AsSagaEvent gives the common shape and the event type of a saga event, as
// returned by [Codec.DecodeMessage]. It reports false for any other value.
func AsSagaEvent(v any) (event SagaEvent, eventType string, ok bool) {
	switch v := v.(type) {
	case *SagaCompleted:
		return SagaEvent(*v), EventSagaCompleted, true
	case *SagaCompensated:
		return SagaEvent(*v), EventSagaCompensated, true
	case *SagaParked:
		return SagaEvent(*v), EventSagaParked, true
	case *SagaResumed:
		return SagaEvent(*v), EventSagaResumed, true
	}
	return SagaEvent{}, "", false
}

// StepEvent is the common shape of the three step events.
type StepEvent StepSucceeded

// AsStepEvent gives the common shape and the event type of a step event, as
// returned by [Codec.DecodeMessage]. It reports false for any other value.
func AsStepEvent(v any) (event StepEvent, eventType string, ok bool) {
	switch v := v.(type) {
	case *StepSucceeded:
		return StepEvent(*v), EventStepSucceeded, true
	case *StepFailed:
		return StepEvent(*v), EventStepFailed, true
	case *StepUndone:
		return StepEvent(*v), EventStepUndone, true
	}
	return StepEvent{}, "", false
}

// NullableBytes makes a nullable bytes field: nil is null, an empty slice is
// an empty value.
func NullableBytes(b []byte) *[]byte {
	if b == nil {
		return nil
	}
	return &b
}

// BytesOf reads a nullable bytes field: null is nil, an empty value is an
// empty slice that is not nil.
func BytesOf(b *[]byte) []byte {
	if b == nil {
		return nil
	}
	if *b == nil {
		return []byte{}
	}
	return *b
}

// NullableText makes a nullable text field: "" is null. Bytes that are not
// UTF-8 are replaced by U+FFFD, since such texts come from anywhere.
func NullableText(s string) *string {
	if s == "" {
		return nil
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return &s
}

// TextOf reads a nullable text field: null is "".
func TextOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
