package saga

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ID identifies a saga; it is the id of the event that the saga handles.
type ID [16]byte

// String is the canonical 36 character form of the id.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// IsZero tells whether the id is unset.
func (id ID) IsZero() bool { return id == ID{} }

// ErrID is returned by ParseID for anything but 36 character UUID text.
var ErrID = errors.New("not a UUID of 36 characters")

// ParseID reads the canonical text form.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, fmt.Errorf("%w: %d characters", ErrID, len(s))
	}
	packed := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
	if _, err := hex.Decode(id[:], []byte(packed)); err != nil {
		return ID{}, fmt.Errorf("%w: not hexadecimal", ErrID)
	}
	return id, nil
}

// Instant is a point in time of the database's clock, in microseconds since 1970 UTC. Zero means none.
type Instant int64

// At turns a time into an Instant; the zero time gives none.
func At(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Time is the instant as a UTC time, the zero time for none.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// Add moves the instant by d.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d.Microseconds()) }

// State is the state of a saga.
type State uint8

// The states of a saga, see the package documentation. The zero value is no state.
const (
	Running State = iota + 1
	Failing
	Compensating
	Completed
	Compensated
)

var stateNames = [...]string{"", "RUNNING", "FAILING", "COMPENSATING", "COMPLETED", "COMPENSATED"}

func (s State) String() string { return name(stateNames[:], int(s)) }

// ParseState reads a state's name.
func ParseState(s string) (State, error) {
	n, err := parse(stateNames[:], s, "saga state")
	return State(n), err
}

// Open tells whether the saga still has to reach an end.
func (s State) Open() bool { return s != Completed && s != Compensated }

// Unwinding tells whether the saga is on its way back.
func (s State) Unwinding() bool { return s == Failing || s == Compensating }

// StepState is the state of a step.
type StepState uint8

// The states of a step, see the package documentation. The zero value is no state.
const (
	Expected StepState = iota + 1
	Waiting
	Ready
	Calling
	Resolving
	Parked
	Succeeded
	Skipped
	Refused
	Abandoned
)

var stepNames = [...]string{"", "EXPECTED", "WAITING", "READY", "CALLING", "RESOLVING", "PARKED", "SUCCEEDED", "SKIPPED", "REFUSED", "ABANDONED"}

func (s StepState) String() string { return name(stepNames[:], int(s)) }

// ParseStepState reads a step state's name.
func ParseStepState(s string) (StepState, error) {
	n, err := parse(stepNames[:], s, "step state")
	return StepState(n), err
}

// Settled tells whether the step is in an end state.
func (s StepState) Settled() bool { return s >= Succeeded }

// Direction tells a step that does from one that undoes.
type Direction uint8

// The two directions of a step.
const (
	Do Direction = iota + 1
	Undo
)

var directionNames = [...]string{"", "do", "undo"}

func (d Direction) String() string { return name(directionNames[:], int(d)) }

// ParseDirection reads `do` or `undo`.
func ParseDirection(s string) (Direction, error) {
	n, err := parse(directionNames[:], s, "direction")
	return Direction(n), err
}

// Role is what an event type means to its aggregate; it decides the scope of an unwinding.
type Role uint8

// The roles of event types.
const (
	Create Role = iota + 1
	Change
	Cancelling
)

var roleNames = [...]string{"", "create", "change", "cancel"}

func (r Role) String() string { return name(roleNames[:], int(r)) }

// ParseRole reads `create`, `change` or `cancel`.
func ParseRole(s string) (Role, error) { n, err := parse(roleNames[:], s, "role"); return Role(n), err }

// Revert tells what undoing a succeeded do step takes; it is pinned with the success (G6).
type Revert uint8

// What undoing takes.
const (
	RevertNone   Revert = iota + 1 // `revert: none`: there is nothing to undo
	RevertPinned                   // the rendered undo request is stored
	RevertBroken                   // the undo request could not be rendered: parks when the saga is unwound
)

var revertNames = [...]string{"", "none", "pinned", "broken"}

func (r Revert) String() string { return name(revertNames[:], int(r)) }

// ParseRevert reads a Revert's name; the empty text is the zero value.
func ParseRevert(s string) (Revert, error) {
	if s == "" {
		return 0, nil
	}
	n, err := parse(revertNames[:], s, "revert")
	return Revert(n), err
}

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

func parse(names []string, s, what string) (int, error) {
	for i, n := range names {
		if n == s && n != "" {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q", what, s)
}
