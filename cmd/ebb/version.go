package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// release is set by the linker in release builds.
var release = ""

type versionCmd struct{}

// build is what this binary is.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Changed bool   `json:"changed,omitempty"` // built from a tree that differs from the commit
	Go      string `json:"go"`
}

func (versionCmd) Run(e *env) error {
	return one(e, thisBuild(), func(w io.Writer, b build) { fmt.Fprintln(w, "ebb", b.Version) })
}

func thisBuild() build {
	b := build{Version: release, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Changed = s.Value == "true"
			}
		}
	}
	switch {
	case b.Version != "":
	case ok && info.Main.Version != "":
		b.Version = info.Main.Version
	default:
		b.Version = "unknown"
	}
	return b
}
