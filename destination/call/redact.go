package call

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

// Redactor hides what a file redacts in what is stored or shown of one step.
// It learns the hidden values as it goes, and hides them wherever else they
// turn up: in a URL, under another name, in the request that undoes. Values
// shorter than 6 bytes are hidden at their own place only; they would hit by
// chance. The zero value hides nothing.
type Redactor struct {
	rules  []spec.Redact
	values []string
}

// NewRedactor hides what any of the rules names.
func NewRedactor(rules ...spec.Redact) *Redactor {
	return &Redactor{rules: slices.DeleteFunc(slices.Clone(rules), spec.Redact.IsZero)}
}

// Request gives a request as it may be shown, and whether anything in it is
// hidden. What is sent stays as it is.
func (r *Redactor) Request(in render.Request) (view render.Request, hidden bool) {
	if len(r.rules) == 0 {
		return in, false
	}
	for _, h := range in.Header {
		if r.hides(h.Name) {
			r.learn(h.Value)
		}
	}
	view = in
	view.Body, hidden = r.body(in.Body)
	clean := newScrubber(r.values)
	view.URL = string(clean.bytes([]byte(in.URL)))
	hidden = hidden || view.URL != in.URL
	view.Header = make([]render.Header, len(in.Header))
	for i, h := range in.Header {
		value := string(clean.bytes([]byte(h.Value)))
		if r.hides(h.Name) {
			value = render.Mask
		}
		hidden = hidden || value != h.Value
		view.Header[i] = render.Header{Name: h.Name, Value: value}
	}
	return view, hidden
}

// Reply gives a reply as it may be stored.
func (r *Redactor) Reply(header http.Header, body []byte) (http.Header, []byte) {
	if len(r.rules) == 0 {
		return header, body
	}
	out := header.Clone()
	for name, values := range out {
		if r.hides(name) {
			r.learn(values...)
			for i := range values {
				values[i] = render.Mask
			}
		}
	}
	body, _ = r.body(body)
	newScrubber(r.values).header(out)
	return out, body
}

func (r *Redactor) hides(header string) bool {
	return slices.ContainsFunc(r.rules, func(rule spec.Redact) bool { return rule.HasHeader(header) })
}

func (r *Redactor) learn(values ...string) {
	for _, v := range values {
		if len(v) >= minSecret && v != render.Mask {
			r.values = append(r.values, v)
		}
	}
}

func (r *Redactor) body(body []byte) ([]byte, bool) {
	var paths []spec.Path
	for _, rule := range r.rules {
		paths = append(paths, rule.Body...)
	}
	if len(paths) == 0 && !render.ParseReply(body).IsJSON() {
		clean := newScrubber(r.values).bytes(slices.Clone(body))
		return clean, string(clean) != string(body)
	}
	_, found := render.Redact(body, paths, nil)
	r.learn(found...)
	masked, _ := render.Redact(body, paths, r.values)
	return masked, string(masked) != string(body)
}

// inURL is how render puts a value into a URL.
func inURL(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
