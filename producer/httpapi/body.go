package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ebbline/ebb/producer/order"
)

// maxBody is the largest request body, in bytes.
const maxBody = 1 << 20

// body is a request's JSON object, field by field, and what is wrong with it.
// encoding/json alone would match names without regard to case, take the last
// of a repeated name, and stop at the first fault.
type body struct {
	raw      []byte
	fields   map[string]json.RawMessage
	problems []order.Problem
}

// readBody reads one JSON object. If it is not required, no body at all is an
// empty object.
func readBody(w http.ResponseWriter, r *http.Request, required bool) (*body, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, &problem{Status: http.StatusRequestEntityTooLarge, code: "too-large", Detail: fmt.Sprintf("the body has more than %d bytes", maxBody)}
	}
	if err != nil {
		return nil, malformed("the body could not be read to its end")
	}
	if len(raw) == 0 && !required {
		return &body{}, nil
	}
	if err := checkContentType(r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) {
		return nil, malformed("the body is not valid UTF-8")
	}
	b := &body{raw: raw, fields: map[string]json.RawMessage{}}
	return b, b.parse()
}

func checkContentType(value string) error {
	mediaType, params, err := mime.ParseMediaType(value)
	charset := params["charset"]
	if err != nil || mediaType != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return &problem{Status: http.StatusUnsupportedMediaType, code: "unsupported-media-type", Detail: "the Content-Type must be application/json in UTF-8"}
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
			b.report(clip(field), "is given more than once")
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
	return &problem{Status: http.StatusBadRequest, code: "malformed", Detail: detail}
}

func (b *body) report(field, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	// One word per field is enough: the first is the closest to its cause.
	if !slices.ContainsFunc(b.problems, func(p order.Problem) bool { return p.Field == field }) {
		b.problems = append(b.problems, order.Problem{Field: field, Detail: detail})
	}
}

// merge adds the problems of an *order.InvalidError.
func (b *body) merge(err error) {
	var bad *order.InvalidError
	if errors.As(err, &bad) {
		for _, p := range bad.Problems {
			b.report(p.Field, "%s", p.Detail)
		}
	}
}

func (b *body) err() error {
	if len(b.problems) == 0 {
		return nil
	}
	return invalid(b.problems...)
}

func invalid(problems ...order.Problem) error { return &order.InvalidError{Problems: problems} }

func (b *body) has(field string) bool { _, ok := b.fields[field]; return ok }

func (b *body) text(field string) string {
	raw, ok := b.fields[field]
	if !ok {
		b.report(field, "is missing")
		return ""
	}
	text, ok := textOf(raw)
	if !ok {
		b.report(field, "must be a string of valid Unicode")
	}
	return text
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
	if raw[0] == '"' {
		text, _ = textOf(raw)
	}
	amount, err := order.ParseAmount(text, scale)
	var bad *order.AmountError
	if errors.As(err, &bad) {
		b.report(field, "%s", bad.Detail)
	}
	return amount
}

func (b *body) refuseOthers(known ...string) {
	var unknown []string
	for field := range b.fields {
		if !slices.Contains(known, field) {
			unknown = append(unknown, field)
		}
	}
	slices.Sort(unknown)
	for _, field := range unknown {
		b.report(clip(field), "is not a known field; known are %s", strings.Join(known, ", "))
	}
}

func clip(name string) string {
	const most = 60
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return name
}

func pathID(r *http.Request) (int64, error) {
	text := r.PathValue("id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, invalid(order.Problem{Field: "id", Detail: "must be an order number, a positive whole number"})
	}
	return id, nil
}

// filterOf reads the query of a list.
func filterOf(query url.Values) (order.Filter, error) {
	var (
		f order.Filter
		b body
	)
	number := func(name string, most int64) int64 {
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil || n < 1 || n > most {
			b.report(name, "must be a whole number from 1 to %d", most)
		}
		return n
	}
	for name, values := range query {
		if len(values) > 1 {
			b.report(clip(name), "is given more than once")
		}
		switch value := values[0]; name {
		case "limit":
			f.Limit = int(number(name, order.MaxLimit))
		case "before":
			f.Before = number(name, 1<<63-1)
		case "status":
			status, err := order.ParseStatus(value)
			if err != nil {
				b.report(name, "must be one of %v", order.Statuses())
			}
			f.Status = status
		case "customerId":
			if !utf8.ValidString(value) || value == "" || strings.ContainsRune(value, 0) {
				b.report(name, "must be valid UTF-8 and not empty")
			}
			f.CustomerID = value
		case "attention":
			if value != "true" {
				b.report(name, "must be true, or left out")
			}
			f.Attention = true
		default:
			b.report(clip(name), "is not a known parameter; known are limit, before, status, customerId, attention")
		}
	}
	slices.SortFunc(b.problems, func(x, y order.Problem) int { return strings.Compare(x.Field, y.Field) })
	return f, b.err()
}
