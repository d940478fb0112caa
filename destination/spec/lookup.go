package spec

import (
	"fmt"
	"slices"
	"time"
)

// LookupCall asks the destination whether a forward call that may have happened
// did. It only reads.
type LookupCall struct {
	// Call is the question; its placeholders may read the request that was sent.
	Call Call
	// Settle is how long after an attempt's lease nothing can be under way any
	// more: before, that nothing is found says nothing.
	Settle time.Duration
	// The conditions are asked of a 2xx reply, in this order. A reply that none
	// fits leaves the question open; without FoundWhen it means found. 404 and
	// 410 mean not found.
	RefusedWhen  *Condition
	NotFoundWhen *Condition
	PendingWhen  *Condition
	FoundWhen    *Condition
	// Map makes of the reply what the forward call would have answered; nil
	// where it is the same.
	Map *Value
}

// DefaultSettle is how long a request may be under way after its sender has
// given it up.
const DefaultSettle = 30 * time.Second

var lookupSources = []string{"event", "request"}

// lookup reads how the destination is asked.
func (p *fileParser) lookup(n *node, common []Header) *LookupCall {
	if n == nil {
		return nil
	}
	const what = "lookup"
	keys := []string{"method", "url", "query", "headers", "settle", "found_when", "refused_when", "not_found_when", "pending_when", "map"}
	m := p.fields(n, what, keys...)
	if n.kind != kindMap {
		return nil
	}
	p.need(m, n.pos, what, "url")
	in := func(key string) scope { return scope{what: what + "." + key, sources: lookupSources} }
	out := &LookupCall{Settle: p.duration(m.get("settle"), what+".settle", DefaultSettle, 0, 24*time.Hour)}
	out.Call.Method = p.method(m.get("method"), what+".method", "GET")
	if method := out.Call.Method; method != "GET" {
		p.add(keyPos(m, "method"), fmt.Sprintf("%s.method cannot be %s: a lookup only reads", what, method), "write method: GET, or remove it")
	}
	if m.get("url") != nil {
		out.Call.URL = p.url(m.get("url"), in("url"))
	}
	p.query(m.get("query"), &out.Call.URL, in("query"))
	out.Call.Headers = p.headers(m.get("headers"), common, in("headers"))
	for key, to := range map[string]**Condition{
		"found_when": &out.FoundWhen, "refused_when": &out.RefusedWhen, "not_found_when": &out.NotFoundWhen, "pending_when": &out.PendingWhen,
	} {
		if c := m.get(key); c != nil {
			*to = p.replyCondition(c, what+"."+key)
		}
	}
	if c := m.get("map"); c != nil {
		v := p.value(c, scope{what: what + ".map", sources: slices.Concat(lookupSources, []string{"response"})})
		out.Map = &v
	}
	return out
}
