package httpapi

import (
	"fmt"
	"strings"
)

// unknownName says that a name is not known, and which one may have been meant.
// It is worked out only where it is shown.
type unknownName struct {
	what, name string
	known      []string
}

func (u unknownName) String() string {
	if meant := nearest(u.name, u.known); meant != "" {
		return fmt.Sprintf("is not a known %s; did you mean %s?", u.what, meant)
	}
	return fmt.Sprintf("is not a known %s; known are %s", u.what, strings.Join(u.known, ", "))
}

// nearest returns the known name that is at most a third of its letters away,
// however it is spelt in capitals, dashes and underscores. Empty: none is.
func nearest(name string, known []string) string {
	name = plain(clip(name))
	best, least := "", -1
	for _, k := range known {
		d := distance(name, plain(k))
		if d <= len(k)/3 && (least < 0 || d < least) {
			best, least = k, d
		}
	}
	return best
}

func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// distance counts the letters to insert, remove or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
