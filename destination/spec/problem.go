package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in a destination file; both numbers count from 1.
type Pos struct {
	Line   int
	Column int
}

// Problem is one thing that is wrong in a destination file.
type Problem struct {
	File    string
	Line    int
	Column  int
	Message string
	// Suggestion says what to write instead. Empty when nothing is known.
	Suggestion string
}

// String gives "file:line:column: message (suggestion)".
func (p Problem) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	if p.Suggestion != "" {
		text += " (" + p.Suggestion + ")"
	}
	return text
}

// Problems is the error of Parse, LoadDir and CheckSet: everything that is
// wrong, in the order of file, line and column.
type Problems struct {
	List []Problem
}

// Error gives one line per problem.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, problem := range p.List {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// asError returns nil for an empty list, so that a typed nil never leaves the
// package as a non-nil error.
func asError(list []Problem) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	// An anchor that is used twice reports its problems twice.
	return &Problems{List: slices.Compact(list)}
}

// nearest suggests the known word that the unknown one was probably meant to
// be: at most a third of its letters differ. It returns "" when none is near.
func nearest(word string, known []string) string {
	best, bestDistance := "", 1+max(1, len(word)/3)
	for _, candidate := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// didYouMean words a suggestion from nearest, or lists what is allowed.
func didYouMean(word string, known []string) string {
	if best := nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return ""
	}
	return "allowed: " + strings.Join(known, ", ")
}

// distance is the edit distance with adjacent swaps counted as one edit.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// clip shortens a text from the file for a message.
func clip(text string) string {
	const limit = 60
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
