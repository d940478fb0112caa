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

var authKinds = []string{"bearer", "basic", "header", "oauth2"}

func (p *fileParser) auth(n *node) Auth {
	if n == nil {
		return Auth{}
	}
	m := p.fields(n, "auth", append([]string{"mtls"}, authKinds...)...)
	var a Auth
	kinds := 0
	for _, kind := range authKinds {
		val := m.get(kind)
		if val == nil {
			continue
		}
		if kinds++; kinds == 1 {
			a = p.authKind(AuthKind(kind), val)
		}
	}
	if n.kind == kindMap && (kinds > 1 || len(m.pairs) == 0) {
		p.add(n.pos, fmt.Sprintf("auth has %d ways to prove who calls", kinds), "write one of bearer, basic, header, oauth2; mtls may go with it")
	}
	if val := m.get("mtls"); val != nil {
		a.TLS = p.clientTLS(val)
	}
	return a
}

func (p *fileParser) authKind(kind AuthKind, val *node) Auth {
	switch kind {
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
	return Auth{Kind: AuthOAuth2, OAuth2: p.oauth2(val)}
}

func (p *fileParser) oauth2(n *node) *OAuth2 {
	const what = "auth.oauth2"
	m := p.fields(n, what, "token_url", "client_id", "client_secret", "scope", "audience", "send")
	p.need(m, n.pos, what, "token_url", "client_id", "client_secret")
	o := &OAuth2{
		TokenURL: p.secret(m.get("token_url"), what+".token_url"), ClientID: p.secret(m.get("client_id"), what+".client_id"),
		ClientSecret: p.credential(m.get("client_secret"), what+".client_secret"),
		InBody:       choice(p.reader, m.get("send"), what+".send", "header", "body") == "body",
	}
	if o.TokenURL.text != "" && !o.TokenURL.hasReference() {
		if _, reason := checkBaseURL(o.TokenURL.text); reason != "" {
			p.add(m.get("token_url").pos, what+".token_url "+reason, "write for example https://login.example.com/oauth2/token")
		}
	}
	var scopes []string
	for _, s := range p.names(m.get("scope"), what+".scope", "orders:write", validScope) {
		scopes = append(scopes, s.name)
	}
	o.Scope = strings.Join(scopes, " ")
	if a := m.get("audience"); a != nil {
		o.Audience, _ = p.text(a, what+".audience")
	}
	return o
}

// validScope is a scope token of RFC 6749, or several with blanks between.
func validScope(text string) bool {
	for _, c := range []byte(text) {
		if c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return strings.TrimSpace(text) == text
}

func (p *fileParser) clientTLS(n *node) *ClientTLS {
	m := p.fields(n, "auth.mtls", "cert", "key", "ca")
	p.need(m, n.pos, "auth.mtls", "cert", "key")
	return &ClientTLS{Cert: p.pem(m.get("cert"), "auth.mtls.cert"), Key: p.pem(m.get("key"), "auth.mtls.key"), CA: p.pem(m.get("ca"), "auth.mtls.ca")}
}

// pem reads where a PEM file is: its path, or a reference.
func (p *fileParser) pem(n *node, what string) Secret {
	s := p.secret(n, what)
	switch {
	case s.text == "" || s.hasReference():
	case strings.Contains(s.text, "-----BEGIN"):
		p.add(n.pos, what+" is written into the file", "keep it outside and write its path, ${file:PATH} or ${env:NAME}")
	default:
		s.parts = []secretPart{{source: "file", name: s.text}}
	}
	return s
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
		return Secret{}
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
			p.add(pos, fmt.Sprintf("%s has no %s", what, key), "add "+key+":")
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
