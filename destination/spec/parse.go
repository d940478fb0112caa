package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Parse reads one destination file. name is used in messages. The error is a
// *Problems that lists everything found; what needs other files is left to
// CheckSet.
func Parse(name string, data []byte) (*Spec, error) {
	s, problems := parse(name, data)
	if err := asError(problems); err != nil {
		return nil, err
	}
	return s, nil
}

// parse gives as much of the Spec as could be read together with the
// problems, so that a whole folder can be checked in one go.
func parse(name string, data []byte) (*Spec, []Problem) {
	p := &fileParser{
		reader: &reader{file: name},
		spec:   &Spec{File: name, source: slices.Clone(data), hash: hashOf(data)},
		used:   map[*Ref]bool{},
	}
	if root := buildTree(p.reader, data); root != nil {
		p.document(root)
	}
	return p.spec, p.problems
}

type fileParser struct {
	*reader
	spec *Spec
	used map[*Ref]bool // extracts that some template names
	// unclear is set when a condition could not be read, so that nothing can
	// be said about which routes are reached.
	unclear bool
}

var topKeys = []string{
	"destination", "on", "after", "base_url", "auth", "headers", "request", "when", "revert",
	"routes", "otherwise", "idempotent", "timeout", "concurrency", "rate_limit", "breaker", "retry",
	"patience", "on_refused", "on_exhausted", "ordering",
	"success_when", "failure_when", "pending_when", "expect", "classify", "lookup", "redact",
}

// callKeys are those of a call, wherever it is written.
var callKeys = []string{"method", "url", "query", "headers", "content_type", "body"}

func (p *fileParser) document(root *node) {
	p.fields(root, "", topKeys...)
	p.identity(root)
	p.spec.BaseURL = p.baseURL(root)
	p.spec.Auth = p.auth(root.get("auth"))
	if p.spec.Auth.TLS != nil && strings.HasPrefix(p.spec.BaseURL.text, "http://") {
		p.add(keyPos(root.get("auth"), "mtls"), "auth.mtls needs TLS, and base_url begins with http://", "write https://")
	}
	p.rules(root)
	p.redact(root)
	p.routes(root)
	p.after(root)
	p.unreachable()
}

func (p *fileParser) identity(root *node) {
	if name := p.names(root.get("destination"), "destination", "billing", validName); len(name) > 0 {
		p.spec.Name = name[0].name
		if len(name) > 1 {
			p.add(name[1].pos, "destination has more than one name", "write one file per destination")
		}
	} else if root.get("destination") == nil {
		p.add(root.pos, "destination is missing", "start with: destination: NAME")
	}
	on := p.names(root.get("on"), "on", "OrderCreated", validName)
	if root.get("on") == nil || root.get("on").kind == kindList && len(root.get("on").items) == 0 {
		p.add(root.pos, "on is missing: no event would reach this destination", "write for example on: OrderCreated")
	}
	for _, eventType := range on {
		p.spec.rules.EventTypes = append(p.spec.rules.EventTypes, eventType.name)
	}
	p.spec.rules.Destination, p.spec.rules.Hash = p.spec.Name, p.spec.hash
}

func (p *fileParser) rules(root *node) {
	r := &p.spec.rules
	r.Timeout = p.duration(root.get("timeout"), "timeout", DefaultTimeout, 10*time.Millisecond, 10*time.Minute)
	r.Concurrency = p.integer(root.get("concurrency"), "concurrency", DefaultConcurrency, 10_000)
	r.Patience = p.duration(root.get("patience"), "patience", DefaultPatience, time.Second, 90*24*time.Hour)
	r.OnRefused = choice(p.reader, root.get("on_refused"), "on_refused", Compensate, Park, Ignore)
	r.OnExhausted = choice(p.reader, root.get("on_exhausted"), "on_exhausted", Park, Compensate)
	r.Otherwise = choice(p.reader, root.get("otherwise"), "otherwise", Park, Skip, Refuse)
	r.Ordering = choice(p.reader, root.get("ordering"), "ordering", OrderingHold, OrderingPass, OrderingNone)
	p.rateLimit(root.get("rate_limit"))
	p.breaker(root.get("breaker"))
	p.retry(root.get("retry"))
	p.idempotent(root)
}

func (p *fileParser) rateLimit(n *node) {
	if n == nil {
		return
	}
	m := p.fields(n, "rate_limit", "per_second", "burst")
	p.need(m, n.pos, "rate_limit", "per_second")
	p.spec.rules.RateEvery = p.interval(m.get("per_second"), "rate_limit.per_second")
	p.spec.rules.RateBurst = p.integer(m.get("burst"), "rate_limit.burst", 1, 100_000)
}

func (p *fileParser) breaker(n *node) {
	r := &p.spec.rules
	m := p.fields(n, "breaker", "after", "probe", "probe_max")
	r.BreakerAfter = p.integer(m.get("after"), "breaker.after", DefaultBreakerAfter, 1000)
	r.ProbeEvery = p.duration(m.get("probe"), "breaker.probe", DefaultProbeEvery, 10*time.Millisecond, time.Hour)
	r.ProbeMax = p.duration(m.get("probe_max"), "breaker.probe_max", max(DefaultProbeMax, r.ProbeEvery), 10*time.Millisecond, 24*time.Hour)
	if r.ProbeMax < r.ProbeEvery {
		p.add(m.get("probe_max").pos, fmt.Sprintf("breaker.probe_max is %s, below breaker.probe of %s", r.ProbeMax, r.ProbeEvery), "raise breaker.probe_max, or lower breaker.probe")
	}
}

func (p *fileParser) retry(n *node) {
	r := &p.spec.rules
	m := p.fields(n, "retry", "max_attempts", "undo_max_attempts", "base", "max", "retry_after")
	r.MaxAttempts = p.integer(m.get("max_attempts"), "retry.max_attempts", DefaultMaxAttempts, 100)
	r.UndoMaxAttempts = p.integer(m.get("undo_max_attempts"), "retry.undo_max_attempts", max(DefaultUndoMaxAttempts, r.MaxAttempts), 100)
	r.BackoffBase = p.duration(m.get("base"), "retry.base", DefaultBackoffBase, time.Millisecond, time.Hour)
	r.BackoffMax = p.duration(m.get("max"), "retry.max", max(DefaultBackoffMax, r.BackoffBase), time.Millisecond, 24*time.Hour)
	if r.BackoffMax < r.BackoffBase {
		p.add(m.get("max").pos, fmt.Sprintf("retry.max is %s, below retry.base of %s", r.BackoffMax, r.BackoffBase), "raise retry.max, or lower retry.base")
	}
	after := p.fields(m.get("retry_after"), "retry.retry_after", "header", "body", "format", "fallback", "cap")
	r.RetryAfter = RetryAfter{
		Header: DefaultRetryAfterHeader,
		Format: choice(p.reader, after.get("format"), "retry.retry_after.format",
			WaitAuto, WaitSeconds, WaitMilliseconds, WaitUnix, WaitUnixMillis, WaitHTTPDate, WaitISO8601),
		Fallback: p.duration(after.get("fallback"), "retry.retry_after.fallback", 0, 0, 24*time.Hour),
		Cap:      p.duration(after.get("cap"), "retry.retry_after.cap", DefaultRetryAfterCap, time.Millisecond, 24*time.Hour),
	}
	if n := after.get("header"); n != nil {
		if name, ok := p.text(n, "retry.retry_after.header"); ok {
			if !validHeaderName(name) {
				p.add(n.pos, fmt.Sprintf("retry.retry_after.header %q is not a header name", clip(name)), "write for example Retry-After")
			}
			r.RetryAfter.Header = name
		}
	}
	if n := after.get("body"); n != nil {
		if list := p.paths(n, "retry.retry_after.body"); len(list) > 0 {
			r.RetryAfter.Body = list[0]
			if len(list) > 1 {
				p.add(n.pos, "retry.retry_after.body names several places", "keep one JSONPath")
			}
		}
	}
}

func (p *fileParser) idempotent(root *node) {
	r := &p.spec.rules
	r.Idempotency = IdempotentNever
	n := root.get("idempotent")
	switch {
	case n == nil && root.get("lookup") != nil:
	case n == nil:
		p.warn(root.pos, "idempotent is not set: a call that may have happened is never repeated", "write idempotent: true if the destination honours Idempotency-Key")
	case n.kind == kindBool:
		r.Idempotency = Idempotency(n.text)
	case n.kind == kindString && n.text == string(IdempotentSuccess):
		r.Idempotency = IdempotentSuccess
	case n.kind == kindMap:
		m := p.fields(n, "idempotent", "window")
		p.need(m, n.pos, "idempotent", "window")
		r.Idempotency = IdempotentWindow
		r.IdempotencyWindow = p.duration(m.get("window"), "idempotent.window", 24*time.Hour, time.Second, 365*24*time.Hour)
		if r.Patience > r.IdempotencyWindow {
			p.warn(n.pos, fmt.Sprintf("patience of %s is longer than the idempotency window of %s", r.Patience, r.IdempotencyWindow), "set patience to the window or less")
		}
	default:
		p.add(n.pos, fmt.Sprintf("idempotent cannot be %s", shape(n)), "allowed: true, false, success_only, { window: 24h }")
	}
}

func (p *fileParser) warn(pos Pos, message, suggestion string) {
	p.spec.warnings = append(p.spec.warnings, Problem{
		File: p.spec.File, Line: pos.Line, Column: pos.Column, Message: message, Suggestion: suggestion,
	})
}

// after collects the destinations that settle first. It runs last, when all
// conditions and placeholders have named theirs.
func (p *fileParser) after(root *node) {
	p.spec.after = p.names(root.get("after"), "after", "inventory", validName)
	for _, list := range [][]named{p.spec.after, p.spec.from} {
		for _, n := range list {
			if n.name == p.spec.Name {
				p.add(n.pos, fmt.Sprintf("%s cannot wait for itself", n.name), "remove it")
			}
			if !slices.Contains(p.spec.rules.After, n.name) {
				p.spec.rules.After = append(p.spec.rules.After, n.name)
			}
		}
	}
}

// routes reads both forms of a file: routes, or request.url with an optional
// when and one revert at the top.
func (p *fileParser) routes(root *node) {
	common := p.headers(root.get("headers"), nil, scope{what: "headers", sources: commonSources})
	if p.spec.Lookup = p.lookup(root.get("lookup"), common); p.spec.Lookup != nil {
		p.spec.rules.Lookup, p.spec.rules.LookupSettle = true, p.spec.Lookup.Settle
	}
	request := p.fields(root.get("request"), "request", callKeys...)
	answer := p.answer(root, Answer{Polled: root.get("lookup") != nil}, "")
	list := root.get("routes")
	if list == nil {
		p.single(root, request, common, answer)
		return
	}
	for _, key := range []string{"when", "revert"} {
		if n := root.get(key); n != nil {
			p.add(keyPos(root, key), key+" at the top does not go with routes", "write it inside each route")
		}
	}
	if request.get("url") != nil {
		p.add(keyPos(request, "url"), "request.url does not go with routes", "write url inside each route")
	}
	if list.kind != kindList || len(list.items) == 0 {
		p.add(list.pos, "routes must be a list with at least one route", "write - url: /path")
		return
	}
	shared := p.headers(request.get("headers"), common, scope{what: "request.headers", sources: forwardSources})
	for i, item := range list.items {
		p.spec.Routes = append(p.spec.Routes, p.route(item, i, request, common, shared, answer))
	}
}

func (p *fileParser) single(root, request *node, common []Header, answer Answer) {
	p.spec.Single = true
	written := root.get("request")
	if written == nil {
		p.add(root.pos, "request is missing", "write request with method and url, or routes")
		return
	}
	pos := written.pos
	if root.get("otherwise") != nil {
		p.add(keyPos(root, "otherwise"), "otherwise needs routes", "without routes, a false when skips the step")
	}
	route := Route{Pos: pos}
	if n := root.get("when"); n != nil {
		route.When = p.condition(n, "when")
	}
	route.Call = p.call(request, nil, pos, "request", common)
	route.Call.Answer = answer
	route.Revert = p.revert(root.get("revert"), root.pos, "revert", common)
	p.spec.Routes = []Route{route}
}

func (p *fileParser) route(n *node, i int, request *node, common, shared []Header, answer Answer) Route {
	what := fmt.Sprintf("routes[%d]", i)
	m := p.fields(n, what, slices.Concat([]string{"when", "revert"}, callKeys, answerKeys)...)
	route := Route{Pos: n.pos}
	if when := m.get("when"); when != nil {
		route.When = p.condition(when, what+".when")
		p.unclear = p.unclear || route.When == nil
	}
	route.Call = p.call(m, request, n.pos, what, shared)
	route.Call.Answer = p.answer(m, answer, what)
	route.Revert = p.revert(m.get("revert"), n.pos, what+".revert", common)
	return route
}

// call reads a forward call. Keys that m leaves out come from base.
func (p *fileParser) call(m, base *node, pos Pos, what string, common []Header) Call {
	inherit := func(key string) (*node, string) {
		if n := m.get(key); n != nil || base == nil {
			return n, what + "." + key
		}
		return base.get(key), "request." + key
	}
	var c Call
	method, name := inherit("method")
	c.Method = p.method(method, name, "POST")
	if m.get("url") == nil {
		p.add(pos, what+" has no url", "write url: /path")
	} else {
		c.URL = p.url(m.get("url"), scope{what: what + ".url", sources: forwardSources})
	}
	query, name := inherit("query")
	p.query(query, &c.URL, scope{what: name, sources: forwardSources})
	c.Headers = p.headers(m.get("headers"), common, scope{what: what + ".headers", sources: forwardSources})
	contentType, name := inherit("content_type")
	c.ContentType = p.contentType(contentType, c.Headers, name)
	body, name := inherit("body")
	c.Body = p.body(body, c.Method, scope{what: name, sources: forwardSources})
	return c
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

func (p *fileParser) method(n *node, what, fallback string) string {
	if n == nil {
		return fallback
	}
	text, ok := p.text(n, what)
	if !ok {
		return fallback
	}
	if upper := strings.ToUpper(text); slices.Contains(methods, upper) {
		return upper
	}
	p.add(n.pos, fmt.Sprintf("%s cannot be %q", what, clip(text)), didYouMean(text, methods))
	return fallback
}

func (p *fileParser) body(n *node, method string, in scope) *Value {
	switch {
	case n == nil:
		return nil
	case n.kind == kindNull:
		p.add(n.pos, in.what+" is empty", "remove the key to send no body")
		return nil
	case method == "GET" || method == "HEAD":
		p.add(n.pos, fmt.Sprintf("%s: %s has no body", in.what, method), "move the values to the query of url")
		return nil
	}
	v := p.value(n, in)
	return &v
}

// revert reads how a call is undone. It has to be written out: silence would
// be the most expensive way to say "nothing".
func (p *fileParser) revert(n *node, pos Pos, what string, common []Header) *Call {
	const how = "write revert: none, or revert with method and url"
	if n == nil {
		p.add(pos, what+" is missing: how is this call undone?", how)
		return nil
	}
	if n.kind == kindString && n.text == "none" {
		return nil
	}
	if n.kind != kindMap {
		p.add(n.pos, fmt.Sprintf("%s cannot be %s", what, shape(n)), how)
		return nil
	}
	m := p.fields(n, what, slices.Concat([]string{"extract"}, callKeys, answerKeys)...)
	p.need(m, n.pos, what, "method", "url")
	extract := p.extract(m.get("extract"), what+".extract")
	in := func(key string) scope {
		return scope{what: what + "." + key, sources: revertSources, extract: extract, unclear: extract == nil}
	}
	c := &Call{Method: p.method(m.get("method"), what+".method", "DELETE")}
	if m.get("url") != nil {
		c.URL = p.url(m.get("url"), in("url"))
	}
	p.query(m.get("query"), &c.URL, in("query"))
	c.Headers = p.headers(m.get("headers"), common, in("headers"))
	c.ContentType = p.contentType(m.get("content_type"), c.Headers, what+".content_type")
	c.Body = p.body(m.get("body"), c.Method, in("body"))
	c.Answer = p.answer(m, Answer{}, what)
	for _, entry := range m.get("extract").entries() {
		if ref := extract[entry.key]; ref != nil && !p.used[ref] {
			p.warn(entry.pos, fmt.Sprintf("%s.extract.%s is not used", what, entry.key), "remove it, or name it in url, headers or body")
		}
	}
	return c
}

func (p *fileParser) extract(n *node, what string) map[string]*Ref {
	out := map[string]*Ref{}
	if n == nil {
		return out
	}
	if n.kind != kindMap {
		if !n.broken {
			p.add(n.pos, fmt.Sprintf("%s must be a mapping, not %s", what, n.kind), `write name: "response:$.id"`)
		}
		return nil
	}
	for _, entry := range n.pairs {
		out[entry.key] = nil // defined, if not well
		switch {
		case !validName(entry.key):
			p.add(entry.pos, fmt.Sprintf("%s: %q is not a name", what, clip(entry.key)), "letters, digits, - and _, starting with a letter")
			continue
		case slices.Contains(metaNames, entry.key):
			p.add(entry.pos, fmt.Sprintf("%s: {%s} has a meaning of its own", what, entry.key), "choose another name")
			continue
		}
		text, ok := p.text(entry.val, what+"."+entry.key)
		if !ok {
			continue
		}
		if !strings.Contains(text, ":") {
			p.add(entry.val.pos, fmt.Sprintf("%s.%s names no source", what, entry.key), "write request:$.path, response:$.path or event:$.path")
			continue
		}
		if ref := p.ref(text, entry.val.pos, scope{what: what + "." + entry.key, sources: revertSources}); ref != nil {
			ref.Name = entry.key
			out[entry.key] = ref
		}
	}
	return out
}

func (n *node) entries() []pair {
	if n == nil {
		return nil
	}
	return n.pairs
}

func keyPos(n *node, key string) Pos {
	for _, p := range n.pairs {
		if p.key == key {
			return p.pos
		}
	}
	return n.pos
}
