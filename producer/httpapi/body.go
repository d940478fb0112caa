package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ebbline/ebb/producer/order"
)

// maxBody is the largest request body, in bytes.
const maxBody = 10 << 20

// body is a request's JSON object, field by field, and what is wrong with it.
// encoding/json alone would match names without regard to case, take the last
// of a repeated name, and stop at the first fault.
type body struct {
	raw    []byte
	fields map[string]json.RawMessage
	faults
}

// readBody reads one JSON object. If it is not required, no body at all is an
// empty object.
func readBody(w http.ResponseWriter, r *http.Request, required bool) (*body, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return nil, tooLarge.problem("the body has more than %d bytes", maxBody)
	}
	if err != nil {
		return nil, malformed("the body could not be read to its end")
	}
	if len(raw) == 0 && !required {
		return &body{}, nil
	}
	if err := checkContentType(r.Header); err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) {
		return nil, malformed("the body is not valid UTF-8")
	}
	b := &body{raw: raw, fields: map[string]json.RawMessage{}}
	return b, b.parse()
}

func checkContentType(h http.Header) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return mediaType.problem("the body must not have a Content-Encoding")
	}
	name, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || name != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return mediaType.problem("the Content-Type must be application/json in UTF-8")
	}
	return nil
}

func (b *body) parse() error {
	decoder := json.NewDecoder(bytes.NewReader(b.raw))
	first, err := decoder.Token()
	if err != nil {
		return syntaxError(err)
	}
	if first != json.Delim('{') {
		return malformed("the body is not a JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return syntaxError(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return syntaxError(err)
		}
		field, ok := name.(string)
		if !ok {
			return malformed("a field's name is not a string")
		}
		if _, repeated := b.fields[field]; repeated {
			b.report(field, "is given more than once")
		}
		b.fields[field] = value
	}
	if _, err := decoder.Token(); err != nil {
		return syntaxError(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return malformed("something follows the JSON object")
	}
	return nil
}

// syntaxError gives the place of the fault, not the text around it.
func syntaxError(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return malformed(fmt.Sprintf("the body is not valid JSON: %v, at byte %d", syntax, syntax.Offset))
	}
	return malformed("the body is not a complete JSON object")
}

func malformed(detail string) error {
	return malformedBody.problem("%s", detail)
}

// faults collects what is wrong with fields. One word per field is enough: the
// first is the closest to its cause. Beyond maxErrors they are only counted.
type faults struct {
	list []order.Problem
	seen map[string]bool
}

func (f *faults) report(field, format string, args ...any) {
	if f.seen[field] {
		return
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[field] = true
	if len(f.list) == maxErrors {
		return
	}
	f.list = append(f.list, order.Problem{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// merge adds the problems of an *order.InvalidError.
func (f *faults) merge(err error) {
	var bad *order.InvalidError
	if errors.As(err, &bad) {
		for _, p := range bad.Problems {
			f.report(p.Field, "%s", p.Detail)
		}
	}
}

func (f *faults) err(inBody bool) error {
	if len(f.list) == 0 {
		return nil
	}
	return invalid(inBody, f.list, len(f.seen))
}

func (b *body) has(field string) bool { _, ok := b.fields[field]; return ok }

func (b *body) text(field string) string {
	raw, ok := b.fields[field]
	if !ok {
		b.report(field, "is missing")
		return ""
	}
	if typeOf(raw) != "a string" {
		b.report(field, "must be a string, not %s", typeOf(raw))
		return ""
	}
	text, ok := textOf(raw)
	if !ok {
		b.report(field, "must be valid Unicode: half a surrogate pair is no character")
	}
	return text
}

// typeOf names the JSON type of a value for people.
func typeOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "a truth value"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// textOf refuses half a surrogate pair, which encoding/json would replace: the
// stored text would not be the one that was sent.
func textOf(raw json.RawMessage) (string, bool) {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return "", false
	}
	if strings.ContainsRune(*text, utf8.RuneError) && !bytes.ContainsRune(raw, utf8.RuneError) &&
		!bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
		return "", false
	}
	return *text, true
}

func (b *body) amount(field string, scale int) order.Amount {
	raw, ok := b.fields[field]
	if !ok {
		b.report(field, "is missing")
		return order.Amount{}
	}
	text := string(raw)
	switch typeOf(raw) {
	case "a number":
	case "a string":
		text, _ = textOf(raw)
	default:
		b.report(field, "must be a number, or a string of its digits, not %s", typeOf(raw))
		return order.Amount{}
	}
	amount, err := order.ParseAmount(text, scale)
	var bad *order.AmountError
	if errors.As(err, &bad) {
		b.report(field, "%s", bad.Detail)
	}
	return amount
}

// refuseOthers names every field that is not known.
func (b *body) refuseOthers(known ...string) {
	var unknown []string
	for field := range b.fields {
		if !slices.Contains(known, field) {
			unknown = append(unknown, field)
		}
	}
	slices.Sort(unknown)
	for _, field := range unknown {
		b.report(field, "%s", unknownName{"field", field, known})
	}
}
