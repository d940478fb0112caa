package call

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// Masked stands where a secret was.
const Masked = "[masked]"

// sensitiveWords mark header fields whose values are credentials.
var sensitiveWords = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "signature", "session"}

// Mask returns a copy of h in which the values of fields that carry
// credentials are replaced. Names stay, so that a reader sees what was there.
func Mask(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		if !sensitive(name) {
			out[name] = append([]string(nil), values...)
			continue
		}
		masked := make([]string, len(values))
		for i := range values {
			masked[i] = Masked
		}
		out[name] = masked
	}
	return out
}

func sensitive(name string) bool {
	name = strings.ToLower(name)
	for _, word := range sensitiveWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// minSecret is the length from which a credential is looked for in replies.
// Anything shorter would hit by chance and damage honest replies.
const minSecret = 6

// scrubber removes credentials from what a destination sends back.
type scrubber struct{ forms []string }

func newScrubber(secrets []string) scrubber {
	var s scrubber
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		s.forms = append(s.forms, secret)
		quoted, err := json.Marshal(secret)
		for _, form := range []string{url.QueryEscape(secret), url.PathEscape(secret), inURL(secret), strings.Trim(string(quoted), `"`)} {
			if err == nil && form != secret {
				s.forms = append(s.forms, form)
			}
		}
	}
	return s
}

func (s scrubber) bytes(data []byte) []byte {
	for _, form := range s.forms {
		if bytes.Contains(data, []byte(form)) {
			data = bytes.ReplaceAll(data, []byte(form), []byte(Masked))
		}
	}
	return data
}

func (s scrubber) header(h http.Header) {
	for _, values := range h {
		for i, value := range values {
			for _, form := range s.forms {
				value = strings.ReplaceAll(value, form, Masked)
			}
			values[i] = value
		}
	}
}
