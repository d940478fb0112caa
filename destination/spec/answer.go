package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// Meaning is what a rule under classify makes of a reply.
type Meaning string

// The meanings.
const (
	MeansSucceeded     Meaning = "succeeded"     // the work is done
	MeansRefused       Meaning = "refused"       // a definite no; the work is not done
	MeansRetry         Meaning = "retry"         // not taken; later again
	MeansUnknown       Meaning = "unknown"       // may have been done
	MeansPending       Meaning = "pending"       // accepted; its lookup tells how it ends
	MeansMisconfigured Meaning = "misconfigured" // our set-up is at fault
)

// Answer says how the replies to a call are read. The zero value leaves
// everything to the status.
type Answer struct {
	// Classify are rules of which the first that fits decides.
	Classify []Rule
	// FailureWhen makes a 2xx reply a refusal.
	FailureWhen *Condition
	// SuccessWhen must hold for a 2xx reply to be a success.
	SuccessWhen *Condition
	// PendingWhen makes a 2xx reply one that accepts the work and has not done it.
	PendingWhen *Condition
	// Polled says that a lookup can be asked: then 202 is Pending too.
	Polled bool
	// Expect are fields that the reply to a success should have.
	Expect []Path
}

// Rule gives replies a meaning.
type Rule struct {
	// Statuses that the rule is about; empty means all.
	Statuses []StatusRange
	// When is asked of the reply; nil always holds.
	When *Condition
	As   Meaning
	Pos  Pos
}

// StatusRange is a range of statuses, both ends included.
type StatusRange struct{ From, To int }

// Has reports whether the rule is about a status.
func (r Rule) Has(status int) bool {
	for _, s := range r.Statuses {
		if status >= s.From && status <= s.To {
			return true
		}
	}
	return len(r.Statuses) == 0
}

var answerKeys = []string{"success_when", "failure_when", "pending_when", "expect", "classify"}

// answer reads how replies are read. Keys that m leaves out come from base.
func (p *fileParser) answer(m *node, base Answer, what string) Answer {
	place := func(key string) string {
		if what == "" {
			return key
		}
		return what + "." + key
	}
	if n := m.get("success_when"); n != nil {
		base.SuccessWhen = p.replyCondition(n, place("success_when"))
	}
	if n := m.get("failure_when"); n != nil {
		base.FailureWhen = p.replyCondition(n, place("failure_when"))
	}
	if n := m.get("pending_when"); n != nil {
		base.PendingWhen = p.replyCondition(n, place("pending_when"))
		p.needsLookup(keyPos(m, "pending_when"), place("pending_when"), base)
	}
	if n := m.get("expect"); n != nil {
		base.Expect = p.paths(n, place("expect"))
	}
	if n := m.get("classify"); n != nil {
		base.Classify = p.classify(n, place("classify"))
		for _, r := range base.Classify {
			if r.As == MeansPending {
				p.needsLookup(r.Pos, "as: pending in "+place("classify"), base)
			}
		}
	}
	return base
}

// needsLookup refuses what could never be settled: only a lookup tells how
// pending work ends, and there is none for an undo.
func (p *fileParser) needsLookup(pos Pos, what string, a Answer) {
	if !a.Polled {
		p.add(pos, what+" needs a lookup to ask how the work ends", "write lookup with a url, and pending_when for a forward call only")
	}
}

// paths reads one JSONPath or a list of them.
func (p *fileParser) paths(n *node, what string) []Path {
	items := []*node{n}
	if n.kind == kindList {
		items = n.items
	}
	var out []Path
	for _, item := range items {
		text, ok := p.text(item, what)
		if !ok {
			continue
		}
		path, message, suggestion := parsePath(text)
		if message != "" {
			p.add(item.pos, what+": "+message, suggestion)
			continue
		}
		out = append(out, path)
	}
	if len(items) == 0 {
		p.add(n.pos, what+" is an empty list", "write for example [ $.id ]")
	}
	return out
}

func (p *fileParser) classify(n *node, what string) []Rule {
	const example = "write - { status: 409, when: { path: $.code, op: eq, value: in_progress }, as: unknown }"
	if n.kind != kindList || len(n.items) == 0 {
		p.add(n.pos, what+" must be a list of rules", example)
		return nil
	}
	var out []Rule
	clear := true
	for i, item := range n.items {
		rule, ok := p.rule(item, fmt.Sprintf("%s[%d]", what, i), example)
		clear = clear && ok
		out = append(out, rule)
	}
	if clear {
		p.unreachableRules(out, what)
	}
	return out
}

func (p *fileParser) rule(n *node, what, example string) (Rule, bool) {
	before := len(p.problems)
	r := Rule{Pos: n.pos}
	m := p.fields(n, what, "status", "when", "as")
	if n.kind != kindMap {
		return r, false
	}
	if m.get("status") == nil && m.get("when") == nil {
		p.add(n.pos, what+" fits every reply", example)
	}
	if status := m.get("status"); status != nil {
		r.Statuses = p.statuses(status, what+".status")
	}
	if when := m.get("when"); when != nil {
		r.When = p.replyCondition(when, what+".when")
	}
	as := m.get("as")
	if as == nil {
		p.add(n.pos, what+" has no as", "allowed: succeeded, refused, retry, unknown, pending, misconfigured")
		return r, false
	}
	r.As = choice(p.reader, as, what+".as", MeansSucceeded, MeansRefused, MeansRetry, MeansUnknown, MeansPending, MeansMisconfigured)
	if r.As == MeansRefused && r.When == nil && r.Has(500) {
		p.warn(n.pos, what+" takes a server error for a refusal: work that was done all the same would not be undone", "add a when that tells a definite no, or write as: unknown")
	}
	return r, len(p.problems) == before
}

func (p *fileParser) statuses(n *node, what string) []StatusRange {
	items := []*node{n}
	if n.kind == kindList {
		items = n.items
	}
	var out []StatusRange
	for _, item := range items {
		if r, ok := parseStatuses(item); ok {
			out = append(out, r)
			continue
		}
		p.add(item.pos, fmt.Sprintf("%s cannot be %s", what, shape(item)), `write 409, "4xx" or "500-504"; 100 to 599`)
	}
	if len(items) == 0 {
		p.add(n.pos, what+" is an empty list", "write 409, or leave status out")
	}
	return out
}

func parseStatuses(n *node) (StatusRange, bool) {
	const lowest, highest = 100, 599
	if n.kind != kindNumber && n.kind != kindString {
		return StatusRange{}, false
	}
	if class, ok := strings.CutSuffix(n.text, "xx"); ok && len(class) == 1 && class >= "1" && class <= "5" {
		from := int(class[0]-'0') * 100
		return StatusRange{from, from + 99}, true
	}
	first, last, isRange := strings.Cut(n.text, "-")
	if !isRange {
		last = first
	}
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	return StatusRange{from, to}, err == nil && err2 == nil && from >= lowest && from <= to && to <= highest
}

// unreachableRules reports rules that an earlier one always takes first.
func (p *fileParser) unreachableRules(rules []Rule, what string) {
	for i := 1; i < len(rules); i++ {
		for j := range i {
			if coversStatuses(rules[j], rules[i]) && covers(rules[j].When, rules[i].When) {
				p.add(rules[i].Pos, fmt.Sprintf("%s[%d] is never reached: %s[%d] at line %d always fits first", what, i, what, j, rules[j].Pos.Line),
					"put the narrower rule first, or remove one")
				break
			}
		}
	}
}

func coversStatuses(earlier, later Rule) bool {
	if len(later.Statuses) == 0 {
		return len(earlier.Statuses) == 0
	}
	for _, s := range later.Statuses {
		for status := s.From; status <= s.To; status++ {
			if !earlier.Has(status) {
				return false
			}
		}
	}
	return true
}
