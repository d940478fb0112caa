package saga

// Kind names an event that a transition publishes through the outbox, in the transaction that stores the transition (G1).
type Kind uint8

// The kinds of emissions; their names are those of the event types.
const (
	SagaCompleted Kind = iota + 1
	SagaCompensated
	SagaParked
	SagaResumed
	CompensationRequested
	StepSucceeded
	StepFailed
	StepUndone
)

var kindNames = [...]string{"", "SagaCompleted", "SagaCompensated", "SagaParked", "SagaResumed", "CompensationRequested", "StepSucceeded", "StepFailed", "StepUndone"}

func (k Kind) String() string { return name(kindNames[:], int(k)) }

// Emission is one event to be published. Saga is a copy of the saga as it was at that moment, with copies of its steps where the
// event is about the saga; Step is a copy of the step where the event is about a step or was caused by one.
type Emission struct {
	Kind  Kind
	Saga  Saga
	Step  Step
	Class Class
}

// TakeEmissions returns what the transitions since the last call published, in order.
func (a *Aggregate) TakeEmissions() []Emission {
	out := a.emissions
	a.emissions = nil
	return out
}

// emitSaga publishes a saga event under a new revision.
func (a *Aggregate) emitSaga(k Kind, s *Saga) {
	s.Revision++
	a.emissions = append(a.emissions, Emission{Kind: k, Saga: s.snapshot()})
}

func (a *Aggregate) emitStep(k Kind, s *Saga, t *Step, c Class) {
	head := *s
	head.Steps = nil
	a.emissions = append(a.emissions, Emission{Kind: k, Saga: head, Step: *t, Class: c})
}

// snapshot copies the saga with its steps, so that later transitions do not change what was published.
func (s *Saga) snapshot() Saga {
	c := *s
	c.Steps = make([]*Step, len(s.Steps))
	for i, t := range s.Steps {
		u := *t
		c.Steps[i] = &u
	}
	return c
}
