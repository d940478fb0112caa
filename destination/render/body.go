package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ebbline/ebb/destination/spec"
)

func (s *sources) body(v spec.Value) ([]byte, *unfit) {
	out, bad := s.appendValue(nil, v, "body")
	if bad != nil {
		return nil, bad
	}
	if !json.Valid(out) {
		// Cannot happen by construction; if it ever does, nothing is sent.
		return nil, &unfit{"body", "the rendered body is not JSON"}
	}
	return out, nil
}

func (s *sources) appendValue(out []byte, v spec.Value, place string) ([]byte, *unfit) {
	var bad *unfit
	switch v.Kind {
	case spec.ValueRaw:
		return append(out, v.Raw...), nil
	case spec.ValueList:
		out = append(out, '[')
		for i, item := range v.Items {
			if i > 0 {
				out = append(out, ',')
			}
			if out, bad = s.appendValue(out, item, fmt.Sprintf("%s[%d]", place, i)); bad != nil {
				return nil, bad
			}
		}
		return append(out, ']'), nil
	case spec.ValueObject:
		out = append(out, '{')
		for i, field := range v.Fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, field.Name), ':')
			if out, bad = s.appendValue(out, field.Value, place+"."+field.Name); bad != nil {
				return nil, bad
			}
		}
		return append(out, '}'), nil
	}
	return s.appendTemplate(out, v.Text, place)
}

func (s *sources) appendTemplate(out []byte, t spec.Template, place string) ([]byte, *unfit) {
	if ref, whole := t.Whole(); whole && ref.Source != spec.SourceMeta {
		n, bad := s.lookup(ref)
		if bad != "" {
			return nil, &unfit{place, bad}
		}
		return append(out, n.raw...), nil
	}
	text, bad := s.expand(t)
	if bad != "" {
		return nil, &unfit{place, bad}
	}
	return appendText(out, text), nil
}

// expand fills a template in one pass: what was inserted is not read again.
func (s *sources) expand(t spec.Template) (text, bad string) {
	if literal, ok := t.Literal(); ok {
		return literal, ""
	}
	var b strings.Builder
	for _, part := range t.Parts {
		if part.Ref == nil {
			b.WriteString(part.Literal)
			continue
		}
		value, bad := s.text(part.Ref)
		if bad != "" {
			return "", bad
		}
		b.WriteString(value)
	}
	return b.String(), ""
}

// appendText appends a JSON string. Unlike json.Marshal it leaves <, > and &
// readable.
func appendText(out []byte, text string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	// A string always encodes, and a buffer takes every write.
	_ = encoder.Encode(text)
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
