package harness

import (
	"net/http"
	"regexp"
	"slices"
	"testing"
)

// Role is one role in a process of its own.
type Role struct {
	*Process
	http *http.Client
}

// StartRole starts a role ("producer", "consumer", "compensator", "relay") on a running infrastructure and waits until it is ready.
// A consumer gets the infrastructure's destination files and needs "--destination", NAME in args.
func StartRole(t testing.TB, infra *Ebb, name string, args ...string) *Role {
	t.Helper()
	r := NewRole(t, infra, name, args...)
	r.Restart()
	return r
}

// NewRole is a role that has not been started: Restart and Launch do, with an environment such as EBB_FAILPOINTS for that run.
func NewRole(t testing.TB, infra *Ebb, name string, args ...string) *Role {
	t.Helper()
	all := append([]string{name, "--data", infra.data, "--http", "127.0.0.1:0"}, args...)
	title := name
	switch name {
	case "consumer":
		all = append(all, "--destinations", infra.opts.Destinations)
		if i := slices.Index(args, "--destination"); i >= 0 && i+1 < len(args) {
			title += " " + args[i+1]
		}
	case "relay":
		all = append(all, "--slot", infra.slot)
	}
	return &Role{Process: newProcess(t, title, all, infra.env), http: client(t)}
}

// Restart starts the role again and waits until it is ready. env holds for this run only.
func (r *Role) Restart(env ...string) {
	r.t.Helper()
	r.Launch(env...)
	r.AwaitReady()
}

// Launch is Restart without the wait.
func (r *Role) Launch(env ...string) {
	r.t.Helper()
	r.start(env...)
}

var listening = regexp.MustCompile(`msg=listening http=(\S+)`)

// API is the base URL of this run's HTTP server, empty before it listens.
func (r *Role) API() string {
	text, ok, _ := r.out.find("msg=listening")
	if !ok {
		return ""
	}
	if m := listening.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// AwaitReady waits until the newest run is ready. Its death before that is a failure.
func (r *Role) AwaitReady() {
	r.t.Helper()
	r.await(func() (bool, string) { return ready(r.http, r.API()) })
}
