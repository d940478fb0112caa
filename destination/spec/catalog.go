package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// catalog collects what a parser knows on its way: the keys of each mapping,
// and of single values their type, default and range. The reference of the
// format is compared with it, so that neither knows what the other does not.
// A nil catalog collects nothing.
type catalog struct {
	keys   map[string][]string // by mapping, as its place is named in messages
	values map[string]string   // by place
}

func (c *catalog) mapping(what string, known []string) {
	if c != nil {
		c.keys[what] = slices.Clone(known)
	}
}

func (c *catalog) value(what, text string) {
	if c != nil {
		c.values[what] = text
	}
}

func (c *catalog) duration(what string, fallback, low, high time.Duration) {
	if c != nil {
		c.value(what, fmt.Sprintf("duration, %s, %s to %s", brief(fallback), brief(low), brief(high)))
	}
}

// brief writes a duration as people do: 5m and not 5m0s.
func brief(d time.Duration) string {
	text := d.String()
	if days := d / (24 * time.Hour); days > 1 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dh", days*24)
	}
	if d >= time.Minute {
		text = strings.TrimSuffix(text, "0s")
	}
	if d >= time.Hour {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
