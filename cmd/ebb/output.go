package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// line prints one JSON document as one line.
func (e *env) line(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// list prints one line of JSON per item, or the items as people read them.
func list[T any](e *env, items []T, human func(w io.Writer, items []T)) error {
	if !e.json {
		human(e.stdout, items)
		return nil
	}
	for _, item := range items {
		if err := e.line(item); err != nil {
			return err
		}
	}
	return nil
}

// one prints one JSON document, or the thing as people read it.
func one[T any](e *env, item T, human func(w io.Writer, item T)) error {
	if e.json {
		return e.line(item)
	}
	human(e.stdout, item)
	return nil
}

// table prints rows in columns below a header; without rows it says that there are none of what.
func table(w io.Writer, what string, header []string, rows [][]string) {
	if len(rows) == 0 {
		fmt.Fprintf(w, "no %s\n", what)
		return
	}
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	_ = t.Flush() // into memory
	for line := range strings.Lines(out.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// plain shows characters that a terminal would obey: texts come from clients and from destinations.
func plain(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }

// stamp is a time as people read it; JSON has more digits.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// trimRight drops the padding at the end of a line.
func trimRight(s string) string { return strings.TrimRight(s, " ") }

// dash stands for nothing in a table.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
