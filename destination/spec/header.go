package spec

import (
	"fmt"
	"mime"
	"slices"
	"strings"
)

// standardHeaders are set by Ebb or by the HTTP connection itself.
var standardHeaders = []string{
	"idempotency-key", "x-event-id", "x-event-type", "x-aggregate-id", "x-destination",
	"x-created-at", "traceparent", "x-revert-aggregate-id", "x-revert-event-type",
	"x-revert-destination", "host", "content-length", "transfer-encoding", "connection",
	"te", "trailer", "upgrade", "keep-alive", "proxy-connection", "expect", "accept-encoding",
}

// credentialHeaders carry secrets, which must not be stored with a request.
var credentialHeaders = []string{
	"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token",
}

func isStandardHeader(name string) bool {
	return slices.Contains(standardHeaders, strings.ToLower(name))
}

func validHeaderName(name string) bool {
	for _, c := range []byte(name) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

// headers reads a mapping of header fields on top of common ones.
func (p *fileParser) headers(n *node, common []Header, in scope) []Header {
	out := slices.Clone(common)
	if n == nil {
		return out
	}
	what := in.what
	if n.kind != kindMap {
		p.add(n.pos, fmt.Sprintf("%s must be a mapping, not %s", what, n.kind), "write X-Name: value")
		return out
	}
	var own []string
	for _, pair := range n.pairs {
		lower := strings.ToLower(pair.key)
		if slices.Contains(own, lower) {
			p.add(pair.pos, fmt.Sprintf("header %q is written twice in %s", clip(pair.key), what), "names do not differ by case")
			continue
		}
		own = append(own, lower)
		if !p.headerName(pair, what) {
			continue
		}
		in.what = what + "." + pair.key
		value, ok := p.headerValue(pair.val, in)
		if !ok {
			continue
		}
		out = slices.DeleteFunc(out, func(h Header) bool { return strings.EqualFold(h.Name, pair.key) })
		out = append(out, Header{Name: pair.key, Value: value})
	}
	return out
}

// contentType reads the media type of the body, which is JSON in any case.
func (p *fileParser) contentType(n *node, headers []Header, what string) string {
	if n == nil {
		return ""
	}
	text, ok := p.text(n, what)
	if !ok {
		return ""
	}
	media, _, err := mime.ParseMediaType(text)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		p.add(n.pos, fmt.Sprintf("%s cannot be %q: bodies are JSON", what, clip(text)), "write application/json, or a type that ends with +json")
		return ""
	}
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Content-Type") {
			p.add(n.pos, what+" and the header Content-Type say the same", "keep one of them")
		}
	}
	return text
}

func (p *fileParser) headerName(pair pair, what string) bool {
	lower := strings.ToLower(pair.key)
	switch {
	case !validHeaderName(pair.key):
		p.add(pair.pos, fmt.Sprintf("%q in %s is not a header name", clip(pair.key), what), "letters, digits and -, for example X-Tenant")
	case slices.Contains(standardHeaders, lower):
		p.add(pair.pos, fmt.Sprintf("header %s in %s is set by Ebb", pair.key, what), "remove it")
	case slices.Contains(credentialHeaders, lower):
		p.add(pair.pos, fmt.Sprintf("header %s in %s carries a credential, and headers are stored", pair.key, what), "use auth with ${env:NAME}")
	default:
		return true
	}
	return false
}

func (p *fileParser) headerValue(n *node, in scope) (Template, bool) {
	switch n.kind {
	case kindNumber, kindBool:
		return Template{Parts: []Part{{Literal: n.text}}}, true
	case kindString:
		if strings.ContainsFunc(n.text, isControl) {
			p.add(n.pos, in.what+" holds a control character", "write one line of text")
			return Template{}, false
		}
	}
	if _, ok := p.text(n, in.what); !ok {
		return Template{}, false
	}
	return p.template(n, in), true
}

func isControl(c rune) bool { return c < 0x20 || c >= 0x7f && c <= 0x9f }
