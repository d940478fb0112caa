package spec

import (
	"fmt"
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
}

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
	base *url.URL
	auth *credential
}

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

// Secrets gives every resolved credential, so that a reply which echoes one
// can be cleaned before it is kept.
func (l Live) Secrets() []string {
	if l.auth == nil {
		return nil
	}
	return append([]string(nil), l.auth.secrets...)
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
	if s.Auth.Kind == AuthNone {
		return live, nil
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

func (s *Spec) resolve(secret Secret, field string, from Lookup) (string, error) {
	var out strings.Builder
	for _, p := range secret.parts {
		value, reason := p.resolve(from)
		if reason != "" {
			return "", &ResolveError{s.Name, field, "${" + p.source + ":" + p.name + "}", reason}
		}
		out.WriteString(value)
	}
	return out.String(), nil
}

func (p secretPart) resolve(from Lookup) (value, reason string) {
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
		// Secret files usually end in a line break that is not part of it.
		value = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	default:
		return "", "cannot be resolved here"
	}
	if strings.TrimSpace(value) == "" {
		return "", "is empty"
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", "holds a control character or a line break"
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
