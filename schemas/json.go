package schemas

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	twmb "github.com/twmb/avro"
)

// jsonWriter writes one decoded value as JSON. The values are those of the
// decoder's generic form; the schema says what they mean.
type jsonWriter struct {
	out []byte
}

// noScale says that no currency applies.
const noScale = -1

func appendRecordJSON(out []byte, n *node, v any) ([]byte, *DecodeError) {
	w := jsonWriter{out: out}
	if err := w.value(n, v, noScale); err != nil {
		return nil, err
	}
	return w.out, nil
}

// value writes v. scale is the number of fraction digits of the currency that
// the nearest enclosing record names, or noScale.
func (w *jsonWriter) value(n *node, v any, scale int) *DecodeError {
	if len(w.out) > MaxJSON {
		return &DecodeError{Reason: ReasonTooLarge, Offset: -1, Detail: "the JSON form may have 8388608 bytes"}
	}
	if !n.money {
		scale = noScale
	}
	switch n.kind {
	case "null":
		w.out = append(w.out, "null"...)
	case "boolean":
		w.out = strconv.AppendBool(w.out, v.(bool))
	case "int", "long":
		return w.integer(n, v)
	case "float":
		return w.float(float64(v.(float32)), 32)
	case "double":
		return w.float(v.(float64), 64)
	case "string", "enum":
		return w.text(n, v)
	case "bytes", "fixed":
		return w.binary(n, v, scale)
	case "array":
		return w.array(n, v.([]any), scale)
	case "map":
		return w.mapOf(n, v.(map[string]any), scale)
	case "union":
		return w.union(n, v, scale)
	case "record":
		return w.record(n, v.(map[string]any), scale)
	default:
		return &DecodeError{Reason: ReasonSchema, Offset: -1, Detail: "type " + n.kind + " is not supported"}
	}
	return nil
}

func (w *jsonWriter) record(n *node, v map[string]any, scale int) *DecodeError {
	if n.connect == "io.debezium.data.VariableScaleDecimal" {
		return w.variableScale(v, scale)
	}
	if n.currency >= 0 {
		if own, ok := currencyScaleOf(v[n.fields[n.currency].name]); ok {
			scale = own
		} else {
			scale = noScale
		}
	}
	w.out = append(w.out, '{')
	for i, f := range n.fields {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, f.key...)
		if err := w.value(f.node, v[f.name], scale); err != nil {
			return err.under(f.name)
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// under puts a field name before the path.
func (e *DecodeError) under(name string) *DecodeError {
	if e.Path == "" {
		e.Path = name
	} else {
		e.Path = name + "." + e.Path
	}
	return e
}

func currencyScaleOf(v any) (int, bool) {
	if tagged, ok := v.(map[string]any); ok { // a union
		for _, inner := range tagged {
			v = inner
		}
	}
	code, _ := v.(string)
	return CurrencyScale(code)
}

func (w *jsonWriter) array(n *node, items []any, scale int) *DecodeError {
	w.out = append(w.out, '[')
	for i, item := range items {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(n.items, item, scale); err != nil {
			return err.under("[" + strconv.Itoa(i) + "]")
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *jsonWriter) mapOf(n *node, m map[string]any, scale int) *DecodeError {
	keys := make([]string, 0, len(m))
	for k := range m {
		if !utf8.ValidString(k) {
			return &DecodeError{Reason: ReasonInvalid, Offset: -1, Detail: "a map key is not UTF-8"}
		}
		keys = append(keys, k)
	}
	slices.Sort(keys)
	w.out = append(w.out, '{')
	for i, k := range keys {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(appendString(w.out, k), ':')
		if err := w.value(n.items, m[k], scale); err != nil {
			return err.under("{}") // keys are payload, so they are not named
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *jsonWriter) union(n *node, v any, scale int) *DecodeError {
	if v == nil {
		w.out = append(w.out, "null"...)
		return nil
	}
	tagged, ok := v.(map[string]any)
	if !ok || len(tagged) != 1 {
		return &DecodeError{Reason: ReasonSchema, Offset: -1, Detail: "union value is not tagged"}
	}
	for name, inner := range tagged {
		branch := n.branches[name]
		if branch == nil {
			return &DecodeError{Reason: ReasonSchema, Offset: -1, Detail: "union branch is not known"}
		}
		if err := w.value(branch, inner, scale); err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonWriter) float(f float64, bits int) *DecodeError {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return &DecodeError{Reason: ReasonInvalid, Offset: -1, Detail: "JSON has no NaN and no infinity"}
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	w.out = strconv.AppendFloat(w.out, f, format, -1, bits)
	return nil
}

func (w *jsonWriter) text(n *node, v any) *DecodeError {
	s := v.(string)
	if !utf8.ValidString(s) {
		return &DecodeError{Reason: ReasonInvalid, Offset: -1, Detail: "text is not UTF-8"}
	}
	if n.logical == "uuid" {
		if !isUUID(s) {
			return &DecodeError{Reason: ReasonInvalid, Offset: -1, Detail: fmt.Sprintf("text of %d characters is not a uuid", len(s))}
		}
		s = strings.ToLower(s)
	}
	w.out = appendString(w.out, s)
	return nil
}

func (w *jsonWriter) integer(n *node, v any) *DecodeError {
	switch v := v.(type) {
	case int32:
		return w.whole(n, int64(v))
	case int64:
		return w.whole(n, v)
	case time.Time:
		return w.moment(n, v)
	case time.Duration:
		return w.timeOfDay(v)
	}
	return &DecodeError{Reason: ReasonSchema, Offset: -1, Detail: "logical type " + n.logical + " is not supported"}
}

// whole writes a plain integer, unless Debezium has marked it as a time.
func (w *jsonWriter) whole(n *node, v int64) *DecodeError {
	switch n.connect {
	case "io.debezium.time.Timestamp":
		return w.instant(time.UnixMilli(v))
	case "io.debezium.time.MicroTimestamp":
		return w.instant(time.UnixMicro(v))
	case "io.debezium.time.NanoTimestamp":
		return w.instant(time.Unix(0, v))
	case "io.debezium.time.Date":
		return w.date(time.Unix(v*86400, 0).UTC())
	}
	w.out = strconv.AppendInt(w.out, v, 10)
	return nil
}

func (w *jsonWriter) moment(n *node, t time.Time) *DecodeError {
	switch {
	case n.logical == "date":
		return w.date(t)
	case strings.HasPrefix(n.logical, "local-"):
		return w.time(t, "2006-01-02T15:04:05.000000")
	default:
		return w.instant(t)
	}
}

func (w *jsonWriter) date(t time.Time) *DecodeError { return w.time(t, "2006-01-02") }

// instant writes six fraction digits, or nine if the schema has nanoseconds
// and the value uses them.
func (w *jsonWriter) instant(t time.Time) *DecodeError {
	if t.Nanosecond()%1000 != 0 {
		return w.time(t.UTC(), "2006-01-02T15:04:05.000000000Z")
	}
	return w.time(t.UTC(), "2006-01-02T15:04:05.000000Z")
}

func (w *jsonWriter) time(t time.Time, layout string) *DecodeError {
	if y := t.Year(); y < 0 || y > 9999 {
		return &DecodeError{Reason: ReasonInvalid, Offset: -1, Detail: "time is outside the years 0 to 9999"}
	}
	w.out = append(t.AppendFormat(append(w.out, '"'), layout), '"')
	return nil
}

func (w *jsonWriter) timeOfDay(d time.Duration) *DecodeError {
	if d < 0 || d >= 24*time.Hour {
		return &DecodeError{Reason: ReasonInvalid, Offset: -1, Detail: "time of day is outside 0 to 24 hours"}
	}
	return w.time(time.Unix(0, int64(d)).UTC(), "15:04:05.000000")
}

func (w *jsonWriter) binary(n *node, v any, scale int) *DecodeError {
	switch v := v.(type) {
	case []byte:
		w.base64(v)
		return nil
	case *big.Rat:
		return w.decimal(n, v, scale)
	case [16]byte: // a uuid
		w.out = fmt.Appendf(w.out, `"%x-%x-%x-%x-%x"`, v[0:4], v[4:6], v[6:8], v[8:10], v[10:16])
		return nil
	case twmb.Duration:
		w.out = appendString(w.out, v.String())
		return nil
	}
	return &DecodeError{Reason: ReasonSchema, Offset: -1, Detail: "logical type " + n.logical + " is not supported"}
}

func (w *jsonWriter) base64(b []byte) {
	w.out = append(base64.StdEncoding.AppendEncode(append(w.out, '"'), b), '"')
}

func (w *jsonWriter) decimal(n *node, r *big.Rat, scale int) *DecodeError {
	if n.logical == "big-decimal" { // the scale is in the value
		return w.number(r, fewestDigits(r))
	}
	if checkDecimal(r, n.prec, n.scale) != nil {
		return &DecodeError{Reason: ReasonInvalid, Offset: -1, Detail: fmt.Sprintf("decimal has more than %d digits", n.prec)}
	}
	if scale == noScale {
		scale = n.scale
	}
	return w.number(r, scale)
}

func (w *jsonWriter) number(r *big.Rat, scale int) *DecodeError {
	text, err := FormatDecimal(r, scale)
	if err != nil {
		return &DecodeError{Reason: ReasonPrecision, Offset: -1, Detail: fmt.Sprintf("the amount has more than the %d fraction digits of its currency", scale)}
	}
	w.out = append(w.out, text...)
	return nil
}

// variableScale writes Debezium's record of a scale and an unscaled value as
// the number it means.
func (w *jsonWriter) variableScale(v map[string]any, scale int) *DecodeError {
	exp, okScale := v["scale"].(int32)
	unscaled, okValue := v["value"].([]byte)
	if !okScale || !okValue || exp < -maxDecimalText || exp > maxDecimalText || len(unscaled) > maxDecimalText {
		return &DecodeError{Reason: ReasonInvalid, Offset: -1, Detail: "not a decimal of Debezium"}
	}
	r := twmb.RatFromBytes(unscaled, int(exp))
	if scale == noScale {
		scale = max(int(exp), 0)
	}
	return w.number(r, scale)
}

// fewestDigits is the number of fraction digits r needs; r is a decimal.
func fewestDigits(r *big.Rat) int {
	n, exact := r.FloatPrec()
	if !exact {
		return 0
	}
	return n
}

// appendString appends s as a JSON string. Markup is left alone: the JSON goes
// to APIs, not into pages.
func appendString(out []byte, s string) []byte {
	if plain(s) {
		return append(append(append(out, '"'), s...), '"')
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // text cannot fail
	return append(out, strings.TrimSuffix(b.String(), "\n")...)
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
