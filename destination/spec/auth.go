package spec

import (
	"encoding/base64"
	"fmt"
	"strings"
)

func (a Auth) credential(user, value string) *credential {
	switch a.Kind {
	case AuthBearer:
		return &credential{"Authorization", "Bearer " + value, []string{value}}
	case AuthBasic:
		pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + value))
		return &credential{"Authorization", "Basic " + pair, []string{value, pair}}
	case AuthHeader:
		return &credential{a.Header, value, []string{value}}
	}
	return nil
}

func (p *fileParser) auth(n *node) Auth {
	if n == nil {
		return Auth{}
	}
	m := p.fields(n, "auth", "bearer", "basic", "header")
	if len(m.pairs) != 1 {
		if n.kind == kindMap {
			p.add(n.pos, fmt.Sprintf("auth has %d keys", len(m.pairs)), "write exactly one of bearer, basic, header")
		}
		return Auth{}
	}
	val := m.pairs[0].val
	switch AuthKind(m.pairs[0].key) {
	case AuthBearer:
		return Auth{Kind: AuthBearer, Value: p.credential(val, "auth.bearer")}
	case AuthBasic:
		b := p.fields(val, "auth.basic", "user", "password")
		p.need(b, val.pos, "auth.basic", "user", "password")
		return Auth{Kind: AuthBasic, User: p.secret(b.get("user"), "auth.basic.user"), Value: p.credential(b.get("password"), "auth.basic.password")}
	case AuthHeader:
		h := p.fields(val, "auth.header", "name", "value")
		p.need(h, val.pos, "auth.header", "name", "value")
		name, _ := p.text(h.get("name"), "auth.header.name")
		if name != "" && (!validHeaderName(name) || isStandardHeader(name)) {
			p.add(h.get("name").pos, fmt.Sprintf("auth.header.name cannot be %q", clip(name)), "use the name that the destination documents, for example X-Api-Key")
		}
		return Auth{Kind: AuthHeader, Header: name, Value: p.credential(h.get("value"), "auth.header.value")}
	}
	return Auth{}
}

// credential reads a secret that must be a reference. The text is not echoed:
// it may be the credential itself.
func (p *fileParser) credential(n *node, what string) Secret {
	s := p.secret(n, what)
	if n != nil && n.kind == kindString && n.text != "" && !s.hasReference() {
		p.add(n.pos, what+" is written into the file", "keep it outside and write ${env:NAME} or ${file:PATH}")
	}
	return s
}

func (p *fileParser) secret(n *node, what string) Secret {
	if n == nil {
		return Secret{}
	}
	if n.kind != kindString || n.text == "" {
		p.add(n.pos, fmt.Sprintf("%s must be text, not %s", what, emptyOr(n)), "write ${env:NAME} or ${file:PATH}")
		return Secret{}
	}
	s, message := parseSecret(n.text)
	if message != "" {
		p.add(n.pos, what+" "+message, "write ${env:NAME} or ${file:PATH}")
	}
	return s
}

func emptyOr(n *node) string {
	if n.kind == kindString {
		return "empty text"
	}
	return n.kind.String()
}

func (p *fileParser) need(m *node, pos Pos, what string, keys ...string) {
	for _, key := range keys {
		if m.get(key) == nil {
			p.add(pos, fmt.Sprintf("%s has no %s", what, key), "")
		}
	}
}

// baseURL reads the address. One without references is checked at once.
func (p *fileParser) baseURL(root *node) Secret {
	n := root.get("base_url")
	if n == nil {
		p.add(root.pos, "base_url is missing", `write for example base_url: "${env:`+strings.ToUpper(envName(p.spec.Name))+`_URL}"`)
		return Secret{}
	}
	s := p.secret(n, "base_url")
	if s.text != "" && !s.hasReference() {
		if _, reason := checkBaseURL(s.text); reason != "" {
			p.add(n.pos, "base_url "+reason, "write for example https://api.example.com/v1")
		}
	}
	return s
}

func envName(name string) string {
	if name == "" {
		return "NAME"
	}
	return strings.ReplaceAll(name, "-", "_")
}
