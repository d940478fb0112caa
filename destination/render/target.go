package render

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/ebbline/ebb/destination/spec"
)

// maxURL is what common servers accept for a request line.
const maxURL = 8000

// url renders path and query. Literal parts stay as they are written.
func (s *sources) url(u spec.URL) (string, *unfit) {
	path, bad := s.encode(u.Path)
	if bad != "" {
		return "", &unfit{"url", bad}
	}
	query, bad := s.encode(u.Query)
	if bad != "" {
		return "", &unfit{"url", bad}
	}
	if bad := checkTarget(u, path, query); bad != "" {
		return "", &unfit{"url", bad}
	}
	if u.HasQuery {
		return path + "?" + query, nil
	}
	return path, nil
}

func (s *sources) encode(t spec.Template) (text, bad string) {
	var b strings.Builder
	for _, part := range t.Parts {
		if part.Ref == nil {
			b.WriteString(part.Literal)
			continue
		}
		value, bad := s.text(part.Ref)
		if bad == "" {
			bad = unfitForURL(part.Ref.Name, value)
		}
		if bad != "" {
			return "", bad
		}
		escape(&b, value)
	}
	return b.String(), ""
}

func unfitForURL(name, value string) string {
	switch {
	case strings.TrimSpace(value) == "":
		return fmt.Sprintf("placeholder {%s}: value is blank", name)
	case strings.ContainsFunc(value, unicode.IsControl):
		return fmt.Sprintf("placeholder {%s}: value has a control character", name)
	case hasDotSegment(value):
		return fmt.Sprintf("placeholder {%s}: value has a . or .. segment", name)
	}
	return ""
}

// hasDotSegment looks for "." and ".." between slashes of both kinds, also
// under several layers of percent-encoding: a server may decode once more
// than it should.
func hasDotSegment(value string) bool {
	for range 4 {
		for _, segment := range strings.FieldsFunc(value, func(c rune) bool { return c == '/' || c == '\\' }) {
			if segment == "." || segment == ".." {
				return true
			}
		}
		decoded := decodePercent(value)
		if decoded == value {
			return false
		}
		value = decoded
	}
	// Encoded over and over: no honest identifier looks like this.
	return true
}

// decodePercent decodes what is a valid escape and leaves the rest alone.
func decodePercent(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if decoded, err := url.PathUnescape(text[i : i+3]); err == nil {
				b.WriteString(decoded)
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// escape percent-encodes everything but RFC 3986's unreserved characters, so
// that a value can neither end its segment nor start a query.
func escape(b *strings.Builder, value string) {
	const hex = "0123456789ABCDEF"
	for i := range len(value) {
		c := value[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
}

// checkTarget reads the rendered URL back as a client would and compares it
// with its template.
func checkTarget(t spec.URL, path, query string) string {
	if len(path)+len(query) > maxURL {
		return fmt.Sprintf("the rendered URL is longer than %d bytes", maxURL)
	}
	const host = "host.invalid"
	target := "http://" + host + path
	if t.HasQuery {
		target += "?" + query
	}
	u, err := url.Parse(target)
	switch {
	case err != nil,
		u.Scheme != "http", u.Host != host, u.User != nil, u.Fragment != "",
		u.EscapedPath() != path, u.RawQuery != query,
		!strings.HasPrefix(path, literalPrefix(t.Path)),
		strings.Count(path, "/") != literalSlashes(t.Path),
		rootedDots(path):
		return "the rendered URL differs from its template in more than its values"
	}
	return ""
}

// rootedDots finds dot segments that a value and literal text form together.
func rootedDots(path string) bool {
	for _, segment := range strings.Split(path, "/") {
		if decoded := decodePercent(segment); decoded == "." || decoded == ".." {
			return true
		}
	}
	return false
}

func literalPrefix(t spec.Template) string {
	if len(t.Parts) == 0 {
		return ""
	}
	return t.Parts[0].Literal
}

func literalSlashes(t spec.Template) int {
	n := 0
	for _, part := range t.Parts {
		n += strings.Count(part.Literal, "/")
	}
	return n
}
