package postgresrun

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotHooked is returned by Start when the program has not called MaybeSupervise: without it the supervisor would
// run the whole program a second time.
var ErrNotHooked = errors.New("postgresrun: call MaybeSupervise first thing in main (or in TestMain) before Start")

// InUseError says that a living process owns the data folder.
type InUseError struct {
	DataDir string
	PID     int // of the owner; 0 if unknown
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("data folder %s is in use by process %d: stop it, or choose another data folder", e.DataDir, e.PID)
}

// NotFoundError says that no usable server was found, and where it was looked for.
type NotFoundError struct {
	Major  int      // the release the data folder needs; 0 if any from MinMajor on would do
	Looked []string // one entry per place, with what was wrong there
	Fetch  error    // why the download failed, nil if it was not tried
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	if e.Major > 0 {
		fmt.Fprintf(&b, "no PostgreSQL %d found (the data folder was made by that release)", e.Major)
	} else {
		fmt.Fprintf(&b, "no PostgreSQL %d or newer found", MinMajor)
	}
	for _, place := range e.Looked {
		b.WriteString("\n  looked at " + place)
	}
	if e.Fetch != nil {
		b.WriteString("\n  download failed: " + e.Fetch.Error())
	}
	b.WriteString("\ninstall PostgreSQL (Debian: apt install postgresql, macOS: brew install postgresql@18), " +
		"or use a running server with --postgres DSN")
	return b.String()
}

// Unwrap gives the cause of a failed download.
func (e *NotFoundError) Unwrap() error { return e.Fetch }

// ExitError says that the server ended although nobody asked it to, or did not come up.
type ExitError struct {
	Op     string // "start" or "run"
	Status string // of the process
	Log    string // path of the log
	Tail   string // its last lines
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("postgres ended (%s): %s; the end of %s:\n%s", e.Op, e.Status, e.Log, e.Tail)
}
