package spec

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"unicode"
)

// Secret is text with references, ${env:NAME} or ${file:PATH}, that are
// resolved at each use. It prints as it is written in the file.
type Secret struct {
	text  string
	parts []secretPart
}

type secretPart struct {
	literal string
	source  string // "", "env" or "file"
	name    string
}

// String gives the text with its references unresolved.
func (s Secret) String() string { return s.text }

// IsZero reports whether nothing was written.
func (s Secret) IsZero() bool { return s.text == "" }

func (s Secret) hasReference() bool {
	for _, p := range s.parts {
		if p.source != "" {
			return true
		}
	}
	return false
}

// parseSecret returns a message when a reference is malformed. The message
// holds nothing of the text: it may be a credential in the wrong place.
func parseSecret(text string) (s Secret, message string) {
	s.text = text
	for rest := text; rest != ""; {
		start := strings.Index(rest, "${")
		if start < 0 {
			s.parts = append(s.parts, secretPart{literal: rest})
			break
		}
		if start > 0 {
			s.parts = append(s.parts, secretPart{literal: rest[:start]})
		}
		end := strings.IndexByte(rest[start:], '}')
		if end < 0 {
			return s, "has a reference without a closing brace"
		}
		source, name, ok := strings.Cut(rest[start+2:start+end], ":")
		if !ok || name == "" || (source != "env" && source != "file") {
			return s, "has a reference that is neither ${env:NAME} nor ${file:PATH}"
		}
		if source == "env" && strings.ContainsAny(name, ":-= $") {
			return s, "has an environment reference with more than a name in it"
		}
		s.parts = append(s.parts, secretPart{source: source, name: name})
		rest = rest[start+end+1:]
	}
	return s, ""
}

// AuthKind is a way to prove who is calling.
type AuthKind string

// The kinds.
const (
	AuthNone   AuthKind = ""
	AuthBearer AuthKind = "bearer"
	AuthBasic  AuthKind = "basic"
	AuthHeader AuthKind = "header"
	AuthOAuth2 AuthKind = "oauth2"
)

// Auth is how a destination is authenticated to.
type Auth struct {
	Kind AuthKind
	// Header is the field's name for AuthHeader.
	Header string
	// User is for AuthBasic.
	User Secret
	// Value is the token, password or header value.
	Value Secret
	// OAuth2 is for AuthOAuth2.
	OAuth2 *OAuth2
	// TLS is our certificate, whatever the Kind; nil for none.
	TLS *ClientTLS
}

// OAuth2 is the client credentials grant of RFC 6749.
type OAuth2 struct {
	TokenURL     Secret
	ClientID     Secret
	ClientSecret Secret
	Scope        string // with blanks between; "" asks for the default
	Audience     string // "" sends none
	// InBody sends id and secret in the form instead of a basic Authorization.
	InBody bool
}

// ClientTLS is a certificate of our own, with its key, and optionally the
// authorities that may have issued the destination's.
type ClientTLS struct{ Cert, Key, CA Secret }

// Lookup is where references are resolved.
type Lookup struct {
	Env  func(name string) (value string, ok bool)
	File func(path string) ([]byte, error)
}

// OSLookup resolves from the process's environment and file system.
func OSLookup() Lookup {
	return Lookup{Env: os.LookupEnv, File: os.ReadFile}
}

// ResolveError says which reference of which field has no usable value.
type ResolveError struct {
	Destination string
	Field       string // "base_url" or "auth"
	Reference   string // as written, for example ${env:BILLING_URL}
	Reason      string // never holds the value
}

func (e *ResolveError) Error() string {
	return fmt.Sprintf("destination %s: %s %s %s", e.Destination, e.Field, e.Reference, e.Reason)
}

// Live holds a Spec's resolved references. It prints as "[redacted]".
//
// Its fields are pointers because fmt does not ask an unexported field of an
// outer struct how it wants to be printed; of a pointer it shows the address.
type Live struct {
	base   *url.URL
	auth   *credential
	oauth2 *ClientCredentials
	tls    *Certificates
}

// ClientCredentials are a resolved OAuth2.
type ClientCredentials struct {
	TokenURL        *url.URL
	ID, Secret      string
	Scope, Audience string
	InBody          bool
}

// Format hides the values, whatever the verb.
func (*ClientCredentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// Certificates are a resolved ClientTLS: PEM, CA empty for the system's roots.
type Certificates struct{ Cert, Key, CA []byte }

// Format hides the values, whatever the verb.
func (*Certificates) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

type credential struct {
	header, value string
	secrets       []string
}

const redacted = "[redacted]"

func (Live) String() string { return redacted }

// GoString hides the values.
func (Live) GoString() string { return redacted }

// LogValue keeps the values out of structured logs.
func (Live) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON keeps the values out of stored and shown JSON.
func (Live) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// BaseURL gives a copy of the resolved address; nil for the zero Live.
func (l Live) BaseURL() *url.URL {
	if l.base == nil {
		return nil
	}
	u := *l.base
	return &u
}

// Credential gives the header field that authenticates a call, and false when
// there is none.
func (l Live) Credential() (header, value string, ok bool) {
	if l.auth == nil {
		return "", "", false
	}
	return l.auth.header, l.auth.value, true
}

// OAuth2 gives what an access token is asked for with; nil for none.
func (l Live) OAuth2() *ClientCredentials { return l.oauth2 }

// Certificates gives our own certificate; nil for none.
func (l Live) Certificates() *Certificates { return l.tls }

// Secrets gives every resolved credential, so that a reply which echoes one
// can be cleaned before it is kept.
func (l Live) Secrets() []string {
	var out []string
	if l.auth != nil {
		out = append(out, l.auth.secrets...)
	}
	if l.oauth2 != nil {
		out = append(out, l.oauth2.Secret)
	}
	return out
}

// Resolve reads all references now. The error is a *ResolveError.
func (s *Spec) Resolve(from Lookup) (Live, error) {
	base, err := s.resolve(s.BaseURL, "base_url", from)
	if err != nil {
		return Live{}, err
	}
	u, reason := checkBaseURL(base)
	if reason != "" {
		return Live{}, &ResolveError{s.Name, "base_url", s.BaseURL.text, reason}
	}
	live := Live{base: u}
	if live.tls, err = s.certificates(u, from); err != nil {
		return Live{}, err
	}
	switch s.Auth.Kind {
	case AuthNone:
		return live, nil
	case AuthOAuth2:
		live.oauth2, err = s.clientCredentials(from)
		return live, err
	}
	value, err := s.resolve(s.Auth.Value, "auth", from)
	if err != nil {
		return Live{}, err
	}
	user, err := s.resolve(s.Auth.User, "auth", from)
	if err != nil {
		return Live{}, err
	}
	live.auth = s.Auth.credential(user, value)
	return live, nil
}

func (s *Spec) clientCredentials(from Lookup) (*ClientCredentials, error) {
	o := s.Auth.OAuth2
	c := &ClientCredentials{Scope: o.Scope, Audience: o.Audience, InBody: o.InBody}
	address, err := s.resolve(o.TokenURL, "auth.oauth2.token_url", from)
	if err != nil {
		return nil, err
	}
	u, reason := checkBaseURL(address)
	if reason != "" {
		return nil, &ResolveError{s.Name, "auth.oauth2.token_url", o.TokenURL.text, reason}
	}
	c.TokenURL = u
	if c.ID, err = s.resolve(o.ClientID, "auth.oauth2.client_id", from); err != nil {
		return nil, err
	}
	if c.Secret, err = s.resolve(o.ClientSecret, "auth.oauth2.client_secret", from); err != nil {
		return nil, err
	}
	return c, nil
}

func (s *Spec) certificates(base *url.URL, from Lookup) (*Certificates, error) {
	t := s.Auth.TLS
	if t == nil {
		return nil, nil
	}
	if base.Scheme != "https" {
		return nil, &ResolveError{s.Name, "base_url", s.BaseURL.text, "must begin with https://, because auth has mtls"}
	}
	out := &Certificates{}
	for _, f := range []struct {
		field string
		from  Secret
		into  *[]byte
	}{{"auth.mtls.cert", t.Cert, &out.Cert}, {"auth.mtls.key", t.Key, &out.Key}, {"auth.mtls.ca", t.CA, &out.CA}} {
		for _, p := range f.from.parts {
			value, reason := p.read(from)
			if reason != "" {
				return nil, &ResolveError{s.Name, f.field, p.String(), reason}
			}
			*f.into = append(*f.into, value...)
		}
	}
	return out, nil
}

func (p secretPart) String() string { return "${" + p.source + ":" + p.name + "}" }

func (s *Spec) resolve(secret Secret, field string, from Lookup) (string, error) {
	var out strings.Builder
	for _, p := range secret.parts {
		value, reason := p.resolve(from)
		if reason != "" {
			return "", &ResolveError{s.Name, field, p.String(), reason}
		}
		out.WriteString(value)
	}
	return out.String(), nil
}

// resolve reads a value of one line.
func (p secretPart) resolve(from Lookup) (value, reason string) {
	if p.source == "" {
		return p.literal, ""
	}
	if value, reason = p.read(from); reason != "" {
		return "", reason
	}
	if p.source == "file" {
		// Secret files usually end in a line break that is not part of it.
		value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", "holds a control character or a line break"
	}
	return value, ""
}

// read gives what a reference stands for, as it is.
func (p secretPart) read(from Lookup) (value, reason string) {
	switch {
	case p.source == "":
		return p.literal, ""
	case p.source == "env" && from.Env != nil:
		v, ok := from.Env(p.name)
		if !ok {
			return "", "is not set; set the environment variable " + p.name
		}
		value = v
	case p.source == "file" && from.File != nil:
		data, err := from.File(p.name)
		if err != nil {
			return "", "cannot be read; check that the file exists and may be read"
		}
		value = string(data)
	default:
		return "", "cannot be resolved here"
	}
	if strings.TrimSpace(value) == "" {
		return "", "is empty"
	}
	return value, ""
}

// checkBaseURL says in a reason, without the value, why an address cannot be
// called.
func checkBaseURL(text string) (*url.URL, string) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "must begin with http:// or https://"
	case u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, "has no host"
	case u.User != nil:
		return nil, "holds credentials; move them to auth"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return nil, "has a query or fragment; only scheme, host and path are allowed"
	case hasDotSegment(u.Path):
		return nil, "has a . or .. segment in its path"
	}
	return u, ""
}

func hasDotSegment(path string) bool {
	for _, segment := range strings.Split(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
