package spec

import (
	"fmt"
	"net/url"
	"strings"
)

// URL is a call's target below the base address: a path that starts with a
// slash and an optional query. Each placeholder becomes one encoded path
// segment, part of one, or one query value.
type URL struct {
	Path     Template
	Query    Template
	HasQuery bool
}

func (p *fileParser) url(n *node, in scope) URL {
	text, ok := p.text(n, in.what)
	if !ok {
		return URL{}
	}
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") {
		p.add(n.pos, in.what+" must start with one slash", "scheme, host and a common prefix belong in base_url")
		return URL{}
	}
	t := p.template(n, in)
	u, bad := splitURL(t)
	if bad != "" {
		p.add(n.pos, in.what+" "+bad, "percent-encode other characters, and use placeholders only for a path segment or a query value")
	}
	return u
}

// query reads query parameters one by one and appends them to the URL's own.
// Unlike there, a name or literal text needs no percent-encoding.
func (p *fileParser) query(n *node, u *URL, in scope) {
	if n == nil {
		return
	}
	if n.kind != kindMap || len(n.pairs) == 0 {
		p.add(n.pos, fmt.Sprintf("%s must be a mapping, not %s", in.what, n.kind), `write name: "{event:$.path}"`)
		return
	}
	what := in.what
	for _, pair := range n.pairs {
		in.what = what + "." + pair.key
		if pair.key == "" || strings.ContainsAny(pair.key, "{}") {
			p.add(pair.pos, fmt.Sprintf("key %q in %s is empty or has a brace", clip(pair.key), what), "placeholders are allowed in values only")
			continue
		}
		value, ok := p.headerValue(pair.val, in)
		if !ok {
			continue
		}
		separator := ""
		if u.HasQuery && len(u.Query.Parts) > 0 {
			separator = "&"
		}
		u.HasQuery = true
		u.Query.Parts = append(u.Query.Parts, Part{Literal: separator + escapeQuery(pair.key) + "="})
		for _, part := range value.Parts {
			part.Literal = escapeQuery(part.Literal)
			u.Query.Parts = append(u.Query.Parts, part)
		}
	}
}

// escapeQuery percent-encodes; unlike url.QueryEscape it has no plus for a
// blank, which some servers take for a plus.
func escapeQuery(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// splitURL cuts a template at its first literal question mark and says what
// is wrong with it.
func splitURL(t Template) (u URL, bad string) {
	for _, part := range t.Parts {
		target := &u.Path
		if u.HasQuery {
			target = &u.Query
		}
		if part.Ref != nil {
			if u.HasQuery && !inQueryValue(u.Query) {
				return u, "has a placeholder in a query name"
			}
			target.Parts = append(target.Parts, part)
			continue
		}
		if c := strings.IndexFunc(part.Literal, notInURL); c >= 0 {
			return u, fmt.Sprintf("has a character that a URL cannot hold: %q", []rune(part.Literal[c:])[0])
		}
		path, query, cut := part.Literal, "", false
		if !u.HasQuery {
			path, query, cut = strings.Cut(part.Literal, "?")
		}
		if path != "" {
			target.Parts = append(target.Parts, Part{Literal: path})
		}
		if cut {
			u.HasQuery = true
			if query != "" {
				u.Query.Parts = append(u.Query.Parts, Part{Literal: query})
			}
		}
	}
	return u, checkSegments(u)
}

// checkSegments looks at the URL with "x" in place of each placeholder.
func checkSegments(u URL) string {
	path, query := sample(u.Path), sample(u.Query)
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return "has a broken percent-encoding"
	}
	if _, err := url.QueryUnescape(query); err != nil {
		return "has a broken percent-encoding in its query"
	}
	if hasDotSegment(decoded) || strings.Contains(decoded, `\`) {
		return "has a . or .. segment or a backslash"
	}
	return ""
}

func sample(t Template) string {
	var b strings.Builder
	for _, part := range t.Parts {
		if part.Ref != nil {
			b.WriteByte('x')
		} else {
			b.WriteString(part.Literal)
		}
	}
	return b.String()
}

func inQueryValue(query Template) bool {
	text := sample(query)
	return strings.Contains(text[strings.LastIndexByte(text, '&')+1:], "=")
}

// notInURL reports characters outside RFC 3986's path and query.
func notInURL(c rune) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return false
	}
	return !strings.ContainsRune("-._~!$&'()*+,;=:@%/?", c)
}
