package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ebbline/ebb/cmd/ebb/internal/scaffold"
)

type destinationNewCmd struct {
	Name  string   `arg:"" help:"Name of the destination, such as crm."`
	Dir   string   `help:"Folder of destination files." default:"${destinations}" placeholder:"DIR"`
	On    []string `help:"Event types that it gets." default:"OrderCreated" placeholder:"TYPE"`
	After []string `help:"Destinations that settle before it." placeholder:"NAME"`
	Test  bool     `help:"Also write a Go test that sends what the file says to a fake of the destination." xor:"kind"`
	Go    string   `help:"Write a Go program and its test into this folder instead of a file." placeholder:"FOLDER" xor:"kind"`
}

// Help has examples.
func (destinationNewCmd) Help() string {
	return `Nothing that exists is overwritten; the new file is checked together with those beside it.

Examples:

  ebb destination new crm --after billing
  ebb destination new crm --test && go test ./consumers/destinations
  ebb destination new crm --go ./crm && go test ./crm
  ebb destination new mailer --dir my/destinations --on OrderCreated,OrderStatusUpdated`
}

// written is what `ebb destination new` has done.
type written struct {
	Name  string   `json:"name"`
	Files []string `json:"files"`
	Next  []string `json:"next"` // commands, in order
	// instead is another way than the commands.
	instead string
}

func (c *destinationNewCmd) Run(e *env) error {
	if c.Go != "" {
		return c.program(e)
	}
	d := scaffold.Destination{Name: c.Name, Dir: c.Dir, On: c.On, After: c.After, Test: c.Test}
	files, err := scaffold.Write(d)
	if err != nil {
		return &usageError{err}
	}
	next := []string{"ebb config check " + c.Dir}
	if c.Test {
		next = append(next, "go test ./"+strings.TrimPrefix(filepath.ToSlash(c.Dir), "./"))
	}
	w := written{Name: c.Name, Files: files, Next: append(next,
		"export "+d.Variable()+"=http://127.0.0.1:9000",
		"ebb config apply "+c.Dir,
		"ebb consumer --destination "+c.Name+" --destinations "+c.Dir,
	), instead: " (or start `ebb up` again, which does all of it)"}
	return w.print(e)
}

// program writes a destination in Go.
func (c *destinationNewCmd) program(e *env) error {
	d := scaffold.Destination{Name: c.Name, Dir: c.Go, On: c.On, After: c.After}
	files, err := scaffold.WriteProgram(d)
	if err != nil {
		return &usageError{err}
	}
	folder := filepath.ToSlash(c.Go)
	if !filepath.IsAbs(c.Go) && !strings.HasPrefix(folder, ".") {
		folder = "./" + folder
	}
	return written{Name: c.Name, Files: files, Next: []string{
		"go test " + folder, "export " + d.Variable() + "=http://127.0.0.1:9000", "go run " + folder,
	}}.print(e)
}

func (w written) print(e *env) error {
	return one(e, w, func(out io.Writer, w written) {
		for _, f := range w.Files {
			fmt.Fprintf(out, "wrote %s\n", f)
		}
		fmt.Fprintf(out, "next, with the address of the real thing%s:\n", w.instead)
		for _, n := range w.Next {
			fmt.Fprintf(out, "  %s\n", n)
		}
	})
}
