package journal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"

	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/producer/outbox"
	"github.com/ebbline/ebb/schemas"
)

// evidence is what a published step event carries beside the step itself.
type evidence struct {
	specHash string
	status   int
	request  []byte
	response []byte
	undo     []byte
}

// maxEventBody is the largest request or response that a step event carries; a larger one is named by its hash, and stands in
// ebb.calls. The undo request always goes in full: it is what a rebuilt journal needs to unwind.
const maxEventBody = 64 << 10

// event makes the outbox row of an emission. Its key is the aggregate's id, so that a consumer reads them in order.
func (u *unit) event(ctx context.Context, k Key, e saga.Emission) (outbox.Event, error) {
	var body any
	switch e.Kind {
	case saga.SagaCompleted:
		body = schemas.SagaCompleted(sagaEvent(k, e))
	case saga.SagaCompensated:
		body = schemas.SagaCompensated(sagaEvent(k, e))
	case saga.SagaParked:
		body = schemas.SagaParked(sagaEvent(k, e))
	case saga.SagaResumed:
		body = schemas.SagaResumed(sagaEvent(k, e))
	case saga.CompensationRequested:
		body = schemas.CompensationRequested{
			SagaID: e.Saga.ID.String(), AggregateID: k.ID, Destination: e.Step.Dest, Class: e.Class.String(),
			Reason: clean(e.Saga.Reason), FailedAt: u.env.Now.Time(),
		}
	case saga.StepSucceeded:
		body = schemas.StepSucceeded(u.stepEvent(k, e))
	case saga.StepFailed:
		body = schemas.StepFailed(u.stepEvent(k, e))
	case saga.StepUndone:
		body = schemas.StepUndone(u.stepEvent(k, e))
	default:
		return outbox.Event{}, fmt.Errorf("emission of kind %s has no event type", e.Kind)
	}
	payload, err := u.store.cfg.Encoder.Encode(ctx, body)
	if err != nil {
		return outbox.Event{}, fmt.Errorf("encode %s of saga %s: %w", e.Kind, e.Saga.ID, err)
	}
	m, ok := schemas.MessageOf(body)
	if !ok {
		return outbox.Event{}, fmt.Errorf("emission of kind %s has no schema", e.Kind)
	}
	return outbox.Event{
		ID: u.nextID(), AggregateType: m.AggregateType, AggregateID: k.ID, Type: m.EventType, Payload: payload,
		Version: e.Saga.Version, SchemaVersion: m.Version,
	}, nil
}

// nextID makes the id of an event: a UUIDv7 of the database's time, so that its row is in the right partition. Ids of one transaction
// ascend in the order of what they tell.
func (u *unit) nextID() uuid.UUID {
	var id uuid.UUID
	us := int64(u.env.Now) + u.emitted
	u.emitted++
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], uint64(us/1000)<<16|0x7000|uint64(us%1000*4096/1000))
	copy(id[:8], head[:])
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()&0x3fff_ffff_ffff_ffff|0x8000_0000_0000_0000)
	return id
}

func sagaEvent(k Key, e saga.Emission) schemas.SagaEvent {
	out := schemas.SagaEvent{
		SagaID: e.Saga.ID.String(), AggregateID: k.ID, EventType: e.Saga.EventType, EventRole: e.Saga.Role.String(),
		Revision: e.Saga.Revision, Reason: nullable(reasonOf(e)), Destinations: []schemas.DestinationState{},
	}
	for _, t := range e.Saga.Steps {
		state := t.State.String()
		if t.Dir == saga.Undo {
			state = "undo " + state
		}
		out.Destinations = append(out.Destinations, schemas.DestinationState{Name: t.Dest, State: state, Reason: nullable(t.Reason)})
	}
	return out
}

func reasonOf(e saga.Emission) string {
	if e.Kind == saga.SagaParked {
		return e.Saga.Attention
	}
	return e.Saga.Reason
}

func (u *unit) stepEvent(k Key, e saga.Emission) schemas.StepEvent {
	ev := u.evidence[stepKey{e.Saga.ID, e.Step.Dest, e.Step.Dir}]
	out := schemas.StepEvent{
		SagaID: e.Saga.ID.String(), AggregateID: k.ID, Destination: e.Step.Dest, Direction: e.Step.Dir.String(), Seq: e.Step.Seq,
		Attempt: int32(e.Step.Attempt), SpecHash: ev.specHash, ResponseStatus: int32(ev.status), UndoRequest: schemas.NullableBytes(ev.undo),
	}
	var notes []string
	if e.Step.Reason != "" {
		notes = append(notes, clean(e.Step.Reason))
	}
	out.Request, notes = bounded("request", ev.request, notes)
	out.Response, notes = bounded("response", ev.response, notes)
	out.Reason = nullable(strings.Join(notes, "; "))
	return out
}

// bounded gives the body, or a note that names what it was.
func bounded(what string, body []byte, notes []string) (*[]byte, []string) {
	if len(body) <= maxEventBody {
		return schemas.NullableBytes(body), notes
	}
	return nil, append(notes, fmt.Sprintf("%s of %d bytes, sha256 %x, is in ebb.calls", what, len(body), sha256.Sum256(body)))
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	s = clean(s)
	return &s
}
