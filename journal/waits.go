package journal

import (
	"fmt"
	"strings"
	"time"

	"github.com/ebbline/ebb/journal/saga"
)

// waiting is a step that is to be explained, with what may hold it. It reads the states as package saga does, for people: nothing is
// decided by it.
type waiting struct {
	earlier []SagaView // of the aggregate, by version
	saga    SagaView
	step    StepView
	rules   *saga.Rules
}

// why is a sentence for a step that has not ended, and empty for one that has.
func (w waiting) why() string {
	t := w.step
	switch t.State {
	case "EXPECTED":
		return fmt.Sprintf("The consumer of %s has not read this event yet.", t.Destination)
	case "WAITING":
		if t.Direction == "undo" {
			return w.undo()
		}
		return w.forward()
	case "READY":
		return "Due " + w.due() + ", as soon as " + t.Destination + " has a free place, within its rate limit and breaker."
	case "CALLING":
		return "The call is out."
	case "RESOLVING":
		return "It may have happened: " + t.Destination + " is asked again under the same key " + w.due() + "."
	case "PARKED":
		return "Stopped for an operator. Once its cause is mended: ebb saga retry " + w.saga.ID + " " + t.Destination + " " + t.Direction + " --reason TEXT"
	default:
		return ""
	}
}

func (w waiting) due() string {
	if w.step.DueAt == nil {
		return "now"
	}
	return "from " + w.step.DueAt.UTC().Format(time.TimeOnly) + " UTC on"
}

// forward tells what a do step comes after, or queues behind.
func (w waiting) forward() string {
	var open []string
	for _, name := range w.rules.After {
		if d := find(w.saga, name, "do"); d != nil && !w.passed(d) {
			open = append(open, name+" ("+d.State+")")
		}
	}
	if len(open) > 0 {
		return "Comes after " + strings.Join(open, ", ") + "."
	}
	for _, e := range w.earlier {
		if e.State == "FAILING" || e.State == "COMPENSATING" {
			return fmt.Sprintf("Waits until %s, version %d, is undone.", e.EventType, e.Version)
		}
		if w.rules.Ordering == saga.OrderNone {
			continue
		}
		for _, direction := range []string{"do", "undo"} {
			if d := find(e, w.step.Destination, direction); d != nil && !settled(d) {
				return fmt.Sprintf("Behind %s, version %d, which is %s at %s.", e.EventType, e.Version, d.State, d.Destination)
			}
		}
	}
	return "Its turn is next."
}

// passed tells whether a do step lets those after it go on. A refusal that is not ignored has stopped the saga.
func (w waiting) passed(t *StepView) bool {
	return t.State == "SUCCEEDED" || t.State == "SKIPPED" || t.State == "REFUSED" && w.saga.State == "RUNNING"
}

// undo tells what has to be undone before.
func (w waiting) undo() string {
	own := find(w.saga, w.step.Destination, "do")
	var open []string
	for i := range w.saga.Steps {
		d := &w.saga.Steps[i]
		if d.Direction != "do" || d.Destination == w.step.Destination {
			continue
		}
		u := find(w.saga, d.Destination, "undo")
		switch {
		case d.State == "CALLING" || d.State == "RESOLVING" || d.State == "PARKED":
			open = append(open, d.Destination+" (do "+d.State+")")
		case u != nil && !settled(u) && own != nil && d.Seq > own.Seq:
			open = append(open, u.Destination+" ("+u.State+")")
		}
	}
	if len(open) > 0 {
		return "Undone after " + strings.Join(open, ", ") + "."
	}
	return "Undone after what later events of the same aggregate did."
}

func find(v SagaView, destination, direction string) *StepView {
	for i := range v.Steps {
		if t := &v.Steps[i]; t.Destination == destination && t.Direction == direction {
			return t
		}
	}
	return nil
}

func settled(t *StepView) bool {
	state, err := saga.ParseStepState(t.State)
	return err == nil && state.Settled()
}
