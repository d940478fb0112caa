package failpoint

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// EnvVar is the environment variable that is read once, at process start.
const EnvVar = "EBB_FAILPOINTS"

// Error is what Hit returns where the action is "error".
type Error struct{ Name string }

func (e *Error) Error() string {
	return "failpoint " + e.Name + ": injected error (unset " + EnvVar + " to go on)"
}

type action string

const (
	kill        action = "kill"
	pause       action = "pause"
	returnError action = "error"
)

type point struct {
	name   string
	action action
	at     int64 // 0: every hit
	hits   atomic.Int64
}

// points is nil unless the environment asked for failpoints: the nil check is
// all that production pays. It is process-wide because the faults are, too.
var points atomic.Pointer[map[string]*point]

func init() {
	list := os.Getenv(EnvVar)
	if list == "" {
		return
	}
	parsed, err := parse(list)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", EnvVar, err)
		os.Exit(2)
	}
	points.Store(&parsed)
}

// Hit marks a place where EBB_FAILPOINTS may interfere. It returns nil unless
// the action of this name is "error", then an *Error. Safe for concurrent use.
func Hit(name string) error {
	active := points.Load()
	if active == nil {
		return nil
	}
	p, ok := (*active)[name]
	if !ok {
		return nil
	}
	return p.hit()
}

// Active tells whether any failpoint is set, so that names need not be put together for nothing.
func Active() bool { return points.Load() != nil }

// HitIn is Hit for a place that many pass, each in a scope of its own, such as a destination: it goes by the names
// NAME and NAME.SCOPE, so that a test can strike one of them. An empty scope is none.
func HitIn(name, scope string) error {
	if points.Load() == nil {
		return nil
	}
	if err := Hit(name); err != nil || scope == "" {
		return err
	}
	return Hit(name + "." + scope)
}

func (p *point) hit() error {
	if n := p.hits.Add(1); p.at != 0 && n != p.at {
		return nil
	}
	resume := make(chan os.Signal, 1)
	if p.action == pause {
		// Listening has to begin before the line below tells the parent that
		// it may send the signal: unhandled, SIGUSR1 ends the process.
		signal.Notify(resume, syscall.SIGUSR1)
		defer signal.Stop(resume)
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", p.name, p.action)
	switch p.action {
	case kill:
		killSelf()
	case pause:
		<-resume
	case returnError:
		return &Error{Name: p.name}
	}
	return nil
}

// killSelf does not return: a signal to the own process may be delivered to
// another thread, and not one more statement of the caller may run.
func killSelf() {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(fmt.Sprintf("failpoint: kill own process: %v", err))
	}
	select {}
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func parse(list string) (map[string]*point, error) {
	parsed := make(map[string]*point)
	var problems []error
	for entry := range strings.SplitSeq(list, ",") {
		p, err := parseEntry(strings.TrimSpace(entry))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if parsed[p.name] != nil {
			problems = append(problems, fmt.Errorf("failpoint %q is named twice", p.name))
			continue
		}
		parsed[p.name] = p
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return parsed, nil
}

func parseEntry(entry string) (*point, error) {
	name, rest, ok := strings.Cut(entry, "=")
	if !ok {
		return nil, fmt.Errorf("entry %q is not NAME=ACTION or NAME=ACTION@N", entry)
	}
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("entry %q: the name must match %s", entry, namePattern)
	}
	verb, count, counted := strings.Cut(rest, "@")
	p := &point{name: name, action: action(verb)}
	switch p.action {
	case kill, pause, returnError:
	default:
		return nil, fmt.Errorf("entry %q: unknown action %q (kill, pause or error)", entry, verb)
	}
	if counted {
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("entry %q: %q is not a hit number from 1", entry, count)
		}
		p.at = n
	}
	return p, nil
}
