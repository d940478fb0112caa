package schemas_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	hamba "github.com/hamba/avro/v2"
	"github.com/stretchr/testify/require"
	twmb "github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/ebbline/ebb/schemas"
)

// TestLibrariesAgree: random values of every event type, written by the library that encodes or by the one that decodes, are read by the
// other as the same value, numbers exactly. The bytes may differ: an array may be written in blocks with or without their size.
func TestLibrariesAgree(t *testing.T) {
	t.Parallel()
	for name, s := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := message(t, name)
			ours := twmb.MustParse(m.Schema)
			theirs, err := hamba.ParseBytesWithCache([]byte(m.Schema), "", &hamba.SchemaCache{})
			require.NoError(t, err)
			config := hamba.Config{}.Freeze()
			goType := reflect.TypeOf(s.value)
			rapid.Check(t, func(t *rapid.T) {
				want := reflect.New(goType)
				drawStruct(t, ours.Root(), want.Elem(), name)

				a, err := config.Marshal(theirs, want.Elem().Interface())
				require.NoError(t, err)
				b, err := ours.AppendEncode(nil, want.Elem().Interface())
				require.NoError(t, err)

				byOurs := reflect.New(goType)
				rest, err := ours.Decode(a, byOurs.Interface())
				require.NoError(t, err)
				require.Empty(t, rest)
				sameValue(t, want.Elem(), byOurs.Elem(), name)

				byTheirs := reflect.New(goType)
				require.NoError(t, config.Unmarshal(theirs, b, byTheirs.Interface()))
				sameValue(t, want.Elem(), byTheirs.Elem(), name)
			})
		})
	}
}

// TestCodecKeepsRandomValues: what Encode takes, DecodeInto's library and the JSON form give back, digit for digit.
func TestCodecKeepsRandomValues(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	for name, s := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			root := twmb.MustParse(message(t, name).Schema).Root()
			goType := reflect.TypeOf(s.value)
			rapid.Check(t, func(t *rapid.T) {
				want := reflect.New(goType)
				drawStruct(t, root, want.Elem(), name)
				payload, err := codec.Encode(ctx, want.Interface())
				require.NoError(t, err)
				got, err := codec.DecodeMessage(ctx, payload)
				require.NoError(t, err)
				sameValue(t, want.Elem(), reflect.ValueOf(got).Elem(), name)

				decoded, err := codec.Decode(ctx, payload)
				require.NoError(t, err)
				var fields map[string]any
				d := json.NewDecoder(strings.NewReader(string(decoded.JSON)))
				d.UseNumber()
				require.NoError(t, d.Decode(&fields))
				for i := range root.Fields {
					sameInJSON(t, want.Elem().Field(i), fields[root.Fields[i].Name], root.Fields[i].Name)
				}
			})
		})
	}
}

// sameInJSON compares numbers and amounts with their JSON form, as text: no float is involved.
func sameInJSON(t *rapid.T, v reflect.Value, got any, path string) {
	switch x := v.Interface().(type) {
	case int64:
		require.Equal(t, json.Number(big.NewInt(x).String()), got, path)
	case int32:
		require.Equal(t, json.Number(big.NewInt(int64(x)).String()), got, path)
	case *big.Rat:
		r, ok := new(big.Rat).SetString(string(got.(json.Number)))
		require.True(t, ok, path)
		require.Zero(t, x.Cmp(r), path)
	case string:
		require.Equal(t, x, got, path)
	}
}

// drawStruct fills one of the generated types.
func drawStruct(t *rapid.T, s *twmb.SchemaNode, into reflect.Value, label string) {
	for i := range s.Fields {
		drawInto(t, &s.Fields[i].Type, into.Field(i), label+"."+s.Fields[i].Name)
	}
	if f := into.FieldByName("Currency"); f.IsValid() { // amounts are written with the digits of their currency
		f.SetString("CLF") // which has as many as the schema
	}
}

func drawInto(t *rapid.T, s *twmb.SchemaNode, into reflect.Value, label string) {
	switch s.Type {
	case "record":
		drawStruct(t, s, into, label)
	case "array":
		n := rapid.IntRange(0, 3).Draw(t, label+" length")
		into.Set(reflect.MakeSlice(into.Type(), n, n))
		for i := range n {
			drawInto(t, s.Items, into.Index(i), label)
		}
	case "union":
		if rapid.Bool().Draw(t, label+" is there") {
			into.Set(reflect.New(into.Type().Elem()))
			drawInto(t, &s.Branches[1], into.Elem(), label)
		}
	default:
		into.Set(reflect.ValueOf(drawValue(t, s, label)))
	}
}

// sameValue compares two values of a generated type: decimals by value, times as instants, nil apart from empty only where null is.
func sameValue(t *rapid.T, want, got reflect.Value, path string) {
	switch want.Kind() {
	case reflect.Struct:
		if at, ok := want.Interface().(time.Time); ok {
			require.True(t, at.Equal(got.Interface().(time.Time)), path)
			return
		}
		for i := range want.NumField() {
			sameValue(t, want.Field(i), got.Field(i), path+"."+want.Type().Field(i).Name)
		}
	case reflect.Pointer:
		require.Equal(t, want.IsNil(), got.IsNil(), path)
		if want.IsNil() {
			return
		}
		if r, ok := want.Interface().(*big.Rat); ok {
			require.Zero(t, r.Cmp(got.Interface().(*big.Rat)), path)
			return
		}
		sameValue(t, want.Elem(), got.Elem(), path)
	case reflect.Slice:
		require.Equal(t, want.Len(), got.Len(), path)
		for i := range want.Len() {
			sameValue(t, want.Index(i), got.Index(i), path)
		}
	default:
		require.Equal(t, want.Interface(), got.Interface(), path)
	}
}

// TestHostileBytes: on any bytes after a header, the codec gives a value or a DecodeError, for every event type, and what it gives is
// encoded to bytes that mean the same.
func TestHostileBytes(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	ctx := t.Context()
	for name, s := range samples(t) {
		payload, err := codec.Encode(ctx, s.value)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				broken := append([]byte(nil), payload[:rapid.IntRange(5, len(payload)).Draw(t, "cut")]...)
				for range rapid.IntRange(0, 4).Draw(t, "flips") {
					if len(broken) > 5 {
						broken[rapid.IntRange(5, len(broken)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
					}
				}
				broken = append(broken, rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "tail")...)
				_, err := codec.Decode(ctx, broken)
				var decode *schemas.DecodeError
				if err != nil {
					require.ErrorAs(t, err, &decode)
				}
				if _, err = codec.DecodeMessage(ctx, broken); err != nil {
					require.ErrorAs(t, err, &decode)
				}
			})
		})
	}
}
