package schemas

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	hamba "github.com/hamba/avro/v2"
	twmb "github.com/twmb/avro"
)

// headerLen is the Confluent wire header: a zero byte and the schema id.
const headerLen = 5

// Encode writes one of our event types, or a pointer to one, in Confluent wire
// format. The schema id comes from the registry the first time a type is
// encoded and from memory afterwards; call [Client.Warm] at start so that no
// encoding inside a transaction has to wait for the registry.
//
// A value that its schema cannot hold exactly is an [EncodeError].
func (c *Codec) Encode(ctx context.Context, v any) ([]byte, error) {
	m := contract().byType[messageType(v)]
	if m == nil {
		return nil, &EncodeError{Type: fmt.Sprintf("%T", v), Detail: "it is not one of the event types of this package"}
	}
	rv := reflect.Indirect(reflect.ValueOf(v))
	if !rv.IsValid() {
		return nil, &EncodeError{Type: m.EventType, Detail: "the pointer is nil"}
	}
	if err := m.check(rv); err != nil {
		return nil, &EncodeError{Type: m.EventType, Detail: err.Error()}
	}
	id, err := c.client.idOf(ctx, m)
	if err != nil {
		return nil, err
	}
	body, err := marshal(m, v)
	if err != nil {
		return nil, &EncodeError{Type: m.EventType, Detail: err.Error()}
	}
	if headerLen+len(body) > MaxPayload {
		return nil, &EncodeError{Type: m.EventType, Detail: fmt.Sprintf("%d bytes, at most %d may be sent", headerLen+len(body), MaxPayload)}
	}
	return append(appendHeader(make([]byte, 0, headerLen+len(body)), id), body...), nil
}

func appendHeader(b []byte, id int) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0), uint32(id))
}

// marshalConfig is our own, so that nobody can register types or converters
// that would change our bytes.
var marshalConfig = hamba.Config{}.Freeze()

func marshal(m *message, v any) ([]byte, error) {
	return marshalConfig.Marshal(m.writer, v)
}

// checkFunc refuses what the Avro encoder would write in silence and nobody
// could read back: rounded decimals, any text as a uuid, invalid UTF-8, times
// beyond RFC 3339. The error names the field it is about.
type checkFunc func(reflect.Value) error

// checkOf builds the check for values of a schema node, nil if all are fine.
func checkOf(node *twmb.SchemaNode, goType reflect.Type) checkFunc {
	switch node.Type {
	case "record":
		return checkRecord(node, goType)
	case "array":
		item := checkOf(node.Items, goType.Elem())
		if item == nil {
			return nil
		}
		return func(v reflect.Value) error {
			for i := range v.Len() {
				if err := item(v.Index(i)); err != nil {
					return err
				}
			}
			return nil
		}
	case "union": // always null and one other type in our schemas
		value := checkOf(&node.Branches[1], goType.Elem())
		if value == nil {
			return nil
		}
		return func(v reflect.Value) error {
			if v.IsNil() {
				return nil
			}
			return value(v.Elem())
		}
	}
	return checkLeaf(node)
}

func checkRecord(node *twmb.SchemaNode, goType reflect.Type) checkFunc {
	type field struct {
		name  string
		index int
		check checkFunc
	}
	var fields []field
	for i := range node.Fields {
		f := &node.Fields[i]
		index := fieldIndex(goType, f.Name)
		if check := checkOf(&f.Type, goType.Field(index).Type); check != nil {
			fields = append(fields, field{f.Name, index, check})
		}
	}
	return func(v reflect.Value) error {
		for _, f := range fields {
			if err := f.check(v.Field(f.index)); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	}
}

func checkLeaf(node *twmb.SchemaNode) checkFunc {
	switch {
	case node.LogicalType == "decimal":
		precision, scale := node.Precision, node.Scale
		return func(v reflect.Value) error {
			r, _ := v.Interface().(*big.Rat)
			return checkDecimal(r, precision, scale)
		}
	case node.LogicalType == "uuid":
		return func(v reflect.Value) error { return checkUUID(v.String()) }
	case node.LogicalType == "timestamp-micros":
		return func(v reflect.Value) error {
			t, _ := v.Interface().(time.Time)
			if y := t.UTC().Year(); t.IsZero() || y < 1 || y > 9999 {
				return errors.New("time is unset or outside the years 1 to 9999")
			}
			return nil
		}
	case node.Type == "string":
		return func(v reflect.Value) error {
			if !utf8.ValidString(v.String()) {
				return fmt.Errorf("text of %d bytes is not valid UTF-8", v.Len())
			}
			return nil
		}
	}
	return nil
}

func fieldIndex(t reflect.Type, avroName string) int {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("avro") == avroName {
			return i
		}
	}
	panic(fmt.Sprintf("schemas: %s has no field for %s; run go generate", t, avroName))
}

func checkUUID(s string) error {
	if !isUUID(s) {
		return fmt.Errorf("text of %d characters is not a uuid in the form 8-4-4-4-12", len(s))
	}
	if strings.ToLower(s) != s {
		return errors.New("uuid is not in lower case")
	}
	return nil
}

func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }
