package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a plain JSON payload, beside its size.
const (
	MaxDepth    = 100 // nesting of objects and arrays
	MaxNumber   = 256 // characters of a number
	MaxExponent = 400 // of a number, either sign: what a double can have, and not what fills the memory once it is written out
)

// checkJSONObject accepts exactly one JSON object in UTF-8 that every reader understands alike: no member twice, no half of a surrogate
// pair, and within the limits.
func checkJSONObject(payload []byte) *DecodeError {
	trimmed := bytes.TrimLeft(payload, " \t\r\n")
	start := len(payload) - len(trimmed)
	if len(trimmed) == 0 {
		return &DecodeError{Reason: ReasonEmpty, Offset: -1, Detail: "only white space"}
	}
	if trimmed[0] != '{' {
		if json.Valid(payload) {
			return &DecodeError{Reason: ReasonNotObject, Offset: start}
		}
		return &DecodeError{Reason: ReasonFormat, Offset: start}
	}
	if !utf8.Valid(payload) {
		return &DecodeError{Reason: ReasonJSON, Offset: -1, Detail: "not UTF-8"}
	}
	if json.Valid(payload) {
		return (&jsonWalk{text: payload}).walk()
	}
	return syntaxError(payload)
}

func syntaxError(payload []byte) *DecodeError {
	d := &DecodeError{Reason: ReasonJSON, Offset: -1}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(payload, new(json.RawMessage)); errors.As(err, &syntax) {
		d.Offset = int(syntax.Offset)
		// The message itself quotes a character of the payload.
		if int(syntax.Offset) >= len(payload) {
			d.Reason = ReasonTruncated
		}
	}
	return d
}

// jsonWalk goes once over JSON that is known to be valid.
type jsonWalk struct {
	text  []byte
	at    int
	stack []jsonLevel
}

// jsonLevel is an object or an array that is not closed yet.
type jsonLevel struct {
	keys map[string]struct{} // of an object so far; nil for an array
	key  bool                // the next text is a key
}

func (w *jsonWalk) walk() *DecodeError {
	for w.at < len(w.text) {
		c := w.text[w.at]
		var err *DecodeError
		switch {
		case c == '{' || c == '[':
			err = w.open(c == '{')
		case c == '}' || c == ']':
			w.stack = w.stack[:len(w.stack)-1]
			w.at++
		case c == ',':
			w.top().key = w.top().keys != nil
			w.at++
		case c == '"':
			err = w.string()
		case c == '-' || c >= '0' && c <= '9':
			err = w.number()
		default: // white space, colons and the letters of true, false and null
			w.at++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonWalk) top() *jsonLevel { return &w.stack[len(w.stack)-1] }

func (w *jsonWalk) open(object bool) *DecodeError {
	if len(w.stack) == MaxDepth {
		return &DecodeError{Reason: ReasonTooLarge, Offset: w.at, Detail: fmt.Sprintf("objects and arrays may be nested %d deep", MaxDepth)}
	}
	level := jsonLevel{key: object}
	if object {
		level.keys = map[string]struct{}{}
	}
	w.stack = append(w.stack, level)
	w.at++
	return nil
}

// string passes over a text, and remembers it if it is a key. Keys are compared as they are meant, not as they are written.
func (w *jsonWalk) string() *DecodeError {
	begin, escaped := w.at, false
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			escaped = true
			w.at++
		}
	}
	w.at++
	raw := w.text[begin:w.at]
	if escaped && loneSurrogate(raw) {
		return &DecodeError{Reason: ReasonJSON, Offset: begin, Detail: "half of a surrogate pair, which is no character"}
	}
	level := w.top()
	if !level.key {
		return nil
	}
	level.key = false
	key := string(raw[1 : len(raw)-1])
	if escaped {
		_ = json.Unmarshal(raw, &key) // it is valid
	}
	if _, twice := level.keys[key]; twice {
		return &DecodeError{Reason: ReasonDuplicate, Offset: begin}
	}
	level.keys[key] = struct{}{}
	return nil
}

// loneSurrogate looks for \ud800 to \udfff that is not a pair of a high and a low one.
func loneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		switch unit := escapedUnit(raw, i-1); {
		case unit >= 0xdc00 && unit < 0xe000:
			return true
		case unit >= 0xd800 && unit < 0xdc00:
			if low := escapedUnit(raw, i+5); low < 0xdc00 || low >= 0xe000 {
				return true
			}
			i += 6
		}
		i += 4
	}
	return false
}

// escapedUnit reads the \uXXXX at a place, 0 if there is none.
func escapedUnit(raw []byte, at int) uint64 {
	if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
	return unit
}

func (w *jsonWalk) number() *DecodeError {
	begin := w.at
	exponent := -1
	for ; w.at < len(w.text) && strings.IndexByte("+-.eE0123456789", w.text[w.at]) >= 0; w.at++ {
		if w.text[w.at]|0x20 == 'e' {
			exponent = w.at + 1
		}
	}
	if w.at-begin > MaxNumber {
		return &DecodeError{Reason: ReasonTooLarge, Offset: begin, Detail: fmt.Sprintf("a number may have %d characters", MaxNumber)}
	}
	if exponent < 0 {
		return nil
	}
	if e, err := strconv.Atoi(string(w.text[exponent:w.at])); err != nil || e > MaxExponent || e < -MaxExponent {
		return &DecodeError{Reason: ReasonTooLarge, Offset: begin, Detail: fmt.Sprintf("an exponent may be between -%d and %d", MaxExponent, MaxExponent)}
	}
	return nil
}
