package spec

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader turns nodes into typed values and collects problems on the way, so
// that one run reports everything.
type reader struct {
	file     string
	problems []Problem
	catalog  *catalog
}

func (r *reader) add(pos Pos, message, suggestion string) {
	r.problems = append(r.problems, Problem{
		File: r.file, Line: pos.Line, Column: pos.Column, Message: message, Suggestion: suggestion,
	})
}

// fields checks that n is a mapping with known keys only and returns it. A
// nil or ill-typed n gives an empty mapping, so that callers need no branch.
// what names the place in messages; "" is the top of the file.
func (r *reader) fields(n *node, what string, known ...string) *node {
	r.catalog.mapping(what, known)
	if n == nil {
		return &node{kind: kindMap}
	}
	if n.kind != kindMap {
		if n.broken {
			return &node{kind: kindMap, pos: n.pos}
		}
		r.add(n.pos, fmt.Sprintf("%s must be a mapping, not %s", what, n.kind), "keys: "+strings.Join(known, ", "))
		return &node{kind: kindMap, pos: n.pos}
	}
	for _, p := range n.pairs {
		if !slices.Contains(known, p.key) {
			r.unknownKey(p, what, known)
		}
	}
	return n
}

// reserved keys have a meaning in the format but not yet in this version.
var reserved = []string{
	"pivot", "valid_until", "brake", "tombstones",
}

func (r *reader) unknownKey(p pair, what string, known []string) {
	place := ""
	if what != "" {
		place = " in " + what
	}
	if slices.Contains(reserved, p.key) {
		r.add(p.pos, fmt.Sprintf("key %q%s is not supported by this version", p.key, place), "remove it")
		return
	}
	r.add(p.pos, fmt.Sprintf("unknown key %q%s", clip(p.key), place), didYouMean(p.key, known))
}

func (r *reader) text(n *node, what string) (string, bool) {
	if n == nil {
		return "", false
	}
	if n.kind != kindString {
		suggestion := ""
		if n.kind == kindNumber || n.kind == kindBool {
			suggestion = "quote it"
		}
		r.add(n.pos, fmt.Sprintf("%s must be text, not %s", what, n.kind), suggestion)
		return "", false
	}
	if n.text == "" {
		r.add(n.pos, what+" is empty", "write a text, or remove the key")
		return "", false
	}
	return n.text, true
}

// choice reads one word out of a fixed list and falls back to the first.
func choice[T ~string](r *reader, n *node, what string, allowed ...T) T {
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	r.catalog.value(what, "`"+strings.Join(words, "`, `")+"`")
	if n == nil {
		return allowed[0]
	}
	if n.kind != kindString {
		r.add(n.pos, fmt.Sprintf("%s must be text, not %s", what, n.kind), "allowed: "+strings.Join(words, ", "))
		return allowed[0]
	}
	if i := slices.Index(words, n.text); i >= 0 {
		return allowed[i]
	}
	r.add(n.pos, fmt.Sprintf("%s cannot be %q", what, clip(n.text)), didYouMean(n.text, words))
	return allowed[0]
}

// integer reads a whole number from 1 to most.
func (r *reader) integer(n *node, what string, fallback, most int) int {
	r.catalog.value(what, fmt.Sprintf("number, %d, 1 to %d", fallback, most))
	if n == nil {
		return fallback
	}
	value, err := strconv.Atoi(n.text)
	if n.kind != kindNumber || err != nil {
		r.add(n.pos, fmt.Sprintf("%s must be a whole number, not %s", what, shape(n)), fmt.Sprintf("write %s: %d", lastWord(what), fallback))
		return fallback
	}
	if value < 1 || value > most {
		r.add(n.pos, fmt.Sprintf("%s is %d, outside 1 to %d", what, value, most), fmt.Sprintf("write %s: %d", lastWord(what), min(max(value, 1), most)))
		return fallback
	}
	return value
}

func (r *reader) duration(n *node, what string, fallback, low, high time.Duration) time.Duration {
	r.catalog.duration(what, fallback, low, high)
	if n == nil {
		return fallback
	}
	if n.kind == kindNumber {
		r.add(n.pos, what+" has no unit", fmt.Sprintf("write %ss, or use ms, m, h", clip(n.text)))
		return fallback
	}
	value, err := time.ParseDuration(n.text)
	if n.kind != kindString || err != nil {
		r.add(n.pos, fmt.Sprintf("%s must be a duration, not %s", what, shape(n)), "write for example 500ms, 5s, 10m or 24h")
		return fallback
	}
	if value < low || value > high {
		r.add(n.pos, fmt.Sprintf("%s is %s, outside %s to %s", what, value, low, high), fmt.Sprintf("write %s: %s", lastWord(what), min(max(value, low), high)))
		return fallback
	}
	return value
}

// interval reads a rate per second and gives the time between two calls.
func (r *reader) interval(n *node, what string) time.Duration {
	if n == nil {
		return 0
	}
	d, ok := ParseDecimal(n.text)
	if n.kind != kindNumber || !ok || d.sign() <= 0 || len(n.text) > 20 || strings.ContainsAny(n.text, "eE") {
		r.add(n.pos, fmt.Sprintf("%s must be a number above 0, not %s", what, shape(n)), "write per_second: 50, or 0.5 for one call in two seconds")
		return 0
	}
	perSecond, _ := new(big.Rat).SetString(n.text)
	nanos := new(big.Rat).Quo(big.NewRat(int64(time.Second), 1), perSecond)
	whole := new(big.Int).Quo(nanos.Num(), nanos.Denom())
	if whole.Sign() == 0 || !whole.IsInt64() || whole.Int64() > int64(24*time.Hour) {
		r.add(n.pos, what+" is out of range", "one call a day up to 1000000000 a second")
		return 0
	}
	return time.Duration(whole.Int64())
}

// names reads one name or a list of different names.
func (r *reader) names(n *node, what, example string, valid func(string) bool) []named {
	if n == nil {
		return nil
	}
	items := []*node{n}
	if n.kind == kindList {
		items = n.items
	}
	var out []named
	for _, item := range items {
		text, ok := r.text(item, what)
		if !ok {
			continue
		}
		if !valid(text) {
			r.add(item.pos, fmt.Sprintf("%s has a name that is not allowed: %q", what, clip(text)), "letters, digits, - and _, starting with a letter, for example "+example)
			continue
		}
		if slices.ContainsFunc(out, func(o named) bool { return o.name == text }) {
			r.add(item.pos, fmt.Sprintf("%s names %q twice", what, text), "keep one")
			continue
		}
		out = append(out, named{text, item.pos})
	}
	return out
}

// named is a name with the place where it is written.
type named struct {
	name string
	pos  Pos
}

func shape(n *node) string {
	if n.kind == kindString || n.kind == kindNumber {
		return strconv.Quote(clip(n.text))
	}
	return n.kind.String()
}

func lastWord(what string) string {
	return what[strings.LastIndexAny(what, ". ")+1:]
}

func validName(text string) bool {
	if text == "" || len(text) > 63 {
		return false
	}
	for i, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		other := c >= '0' && c <= '9' || c == '-' || c == '_'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return true
}
