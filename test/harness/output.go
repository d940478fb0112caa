package harness

import (
	"bufio"
	"io"
	"strings"
	"sync"
)

// output collects what a program writes, over all its runs.
type output struct {
	mu    sync.Mutex
	lines []line
	run   int // of the program, from 1
	start int // index of the first line of this run
	more  chan struct{}
	keep  io.Writer // nil: nowhere
}

type line struct {
	stdout bool
	text   string
}

func newOutput(keep io.Writer) *output { return &output{more: make(chan struct{}), keep: keep} }

// begin starts the lines of a new run.
func (o *output) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run++
	o.start = len(o.lines)
}

// read takes lines until the program and whoever inherited its descriptors have closed them.
func (o *output) read(r io.Reader, stdout bool) {
	in := bufio.NewReader(r)
	for {
		text, err := in.ReadString('\n')
		if text != "" {
			o.add(line{stdout, strings.TrimSuffix(text, "\n")})
		}
		if err != nil {
			return
		}
	}
}

func (o *output) add(l line) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, l)
	if o.keep != nil {
		_, _ = io.WriteString(o.keep, l.text+"\n")
	}
	close(o.more)
	o.more = make(chan struct{})
}

// find gives the first line of this run that contains the text, and else a channel that is closed when there is more to look at.
func (o *output) find(text string) (string, bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lines[o.start:] {
		if strings.Contains(l.text, text) {
			return l.text, true, nil
		}
	}
	return "", false, o.more
}

// text gives all lines of all runs, or only those on standard output of this run.
func (o *output) text(onlyStdout bool) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.lines
	if onlyStdout {
		lines = lines[o.start:]
	}
	var b strings.Builder
	for _, l := range lines {
		if !onlyStdout || l.stdout {
			b.WriteString(l.text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// tail gives the last n lines.
func (o *output) tail(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, l := range o.lines[max(0, len(o.lines)-n):] {
		b.WriteString("  " + l.text + "\n")
	}
	return b.String()
}
