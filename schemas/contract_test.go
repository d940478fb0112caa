package schemas_test

import (
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	twmb "github.com/twmb/avro"

	"github.com/ebbline/ebb/schemas"
)

func TestContract(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("avsc/*.avsc")
	require.NoError(t, err)
	require.Len(t, files, len(schemas.Messages()), "one file per event type")
	for _, m := range schemas.Messages() {
		require.Equal(t, schemas.TopicPrefix+m.AggregateType, m.Topic)
		require.Equal(t, m.Topic+"-"+m.FullName, m.Subject)
		require.Equal(t, schemas.Namespace+"."+m.EventType, m.FullName)
		require.Positive(t, m.Version)
		require.NoError(t, schemas.Validate(schemas.Source{Text: m.Schema}))
		root := twmb.MustParse(m.Schema).Root()
		require.Equal(t, m.EventType, root.Name)
		checkNullable(t, root)
	}
	_, ok := schemas.MessageNamed("ebb.SagaParked")
	require.True(t, ok)
	_, ok = schemas.MessageNamed("Nope")
	require.False(t, ok)
	_, ok = schemas.MessageOf(nil)
	require.False(t, ok)
}

// checkNullable: every field that may be null defaults to null, so that it can
// be dropped and added again.
func checkNullable(t *testing.T, s *twmb.SchemaNode) {
	t.Helper()
	for _, f := range s.Fields {
		require.NotEmpty(t, f.Doc, f.Name)
		if f.Type.Type == "union" {
			require.Len(t, f.Type.Branches, 2, f.Name)
			require.Equal(t, "null", f.Type.Branches[0].Type, f.Name)
			require.True(t, f.HasDefault, f.Name)
			require.Nil(t, f.Default, f.Name)
		}
		if f.Type.Items != nil {
			checkNullable(t, f.Type.Items)
		}
	}
}

// TestGeneratedTypes fails when an .avsc file was changed without go generate.
func TestGeneratedTypes(t *testing.T) {
	t.Parallel()
	for name, s := range samples(t) {
		root := twmb.MustParse(message(t, name).Schema).Root()
		checkStruct(t, name, root, reflect.TypeOf(s.value))
	}
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	listed := regexp.MustCompile(`avsc/\w+\.avsc`).FindAllString(string(text), -1)
	require.Len(t, listed, len(schemas.Messages()), "go:generate lists every file")
}

func checkStruct(t *testing.T, path string, s *twmb.SchemaNode, goType reflect.Type) {
	t.Helper()
	require.Equal(t, len(s.Fields), goType.NumField(), path)
	for i, f := range s.Fields {
		require.Equal(t, f.Name, goType.Field(i).Tag.Get("avro"), path)
		checkType(t, path+"."+f.Name, &f.Type, goType.Field(i).Type)
	}
}

func checkType(t *testing.T, path string, s *twmb.SchemaNode, goType reflect.Type) {
	t.Helper()
	want, ok := map[string]reflect.Type{
		"string": reflect.TypeFor[string](), "long": reflect.TypeFor[int64](), "int": reflect.TypeFor[int32](), "bytes": reflect.TypeFor[[]byte](),
		"bytes decimal": reflect.TypeFor[*big.Rat](), "long timestamp-micros": reflect.TypeFor[time.Time](), "string uuid": reflect.TypeFor[string](),
	}[strings.TrimSpace(s.Type+" "+s.LogicalType)]
	switch s.Type {
	case "union":
		require.Equal(t, reflect.Pointer, goType.Kind(), path)
		checkType(t, path, &s.Branches[1], goType.Elem())
	case "array":
		require.Equal(t, reflect.Slice, goType.Kind(), path)
		checkType(t, path, s.Items, goType.Elem())
	case "record":
		checkStruct(t, path, s, goType)
	default:
		require.True(t, ok, path)
		require.Equal(t, want, goType, path)
	}
}

func TestEventShapes(t *testing.T) {
	t.Parallel()
	for name, s := range samples(t) {
		p := reflect.New(reflect.TypeOf(s.value))
		p.Elem().Set(reflect.ValueOf(s.value))
		saga, sagaType, isSaga := schemas.AsSagaEvent(p.Interface())
		step, stepType, isStep := schemas.AsStepEvent(p.Interface())
		require.Equal(t, strings.HasPrefix(name, "Saga"), isSaga)
		require.Equal(t, strings.HasPrefix(name, "Step"), isStep)
		if isSaga {
			require.Equal(t, name, sagaType)
			require.Equal(t, int64(3), saga.Revision)
		}
		if isStep {
			require.Equal(t, name, stepType)
			require.Equal(t, int64(7), step.Seq)
		}
	}
	require.Nil(t, schemas.NullableBytes(nil))
	require.Nil(t, schemas.BytesOf(nil))
	require.NotNil(t, schemas.BytesOf(schemas.NullableBytes([]byte{})))
	require.Nil(t, schemas.NullableText(""))
	require.Empty(t, schemas.TextOf(nil))
	require.Equal(t, "a\uFFFD", schemas.TextOf(schemas.NullableText("a\xff")))
}

func TestDecimalText(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"0": true, "-0.0001": true, "12345678.90": true, "999999999999999.9999": true, "1.00000000": true,
		"": false, ".5": false, "5.": false, "+1": false, "1e3": false, "0x1": false, "1/3": false, "1_000": false, " 1": false, "NaN": false, "--1": false,
		"1.00001": false, "1000000000000000": false, strings.Repeat("1", 300): false,
	} {
		r, err := schemas.ParseDecimal(text, schemas.AmountPrecision, schemas.AmountScale)
		if !ok {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		_, err = schemas.FormatDecimal(r, 4)
		require.NoError(t, err)
	}
	for _, c := range []struct {
		text, currency string
		ok             bool
	}{
		{"12.34", "USD", true},
		{"12.340", "USD", true},
		{"12.345", "USD", false},
		{"5800", "JPY", true},
		{"58.1", "JPY", false},
		{"1.234", "KWD", true},
		{"1", "usd", false},
		{"1", "", false},
		{"1", "ZZZ", false},
		{"x", "USD", false},
	} {
		_, err := schemas.ParseAmount(c.text, c.currency)
		require.Equal(t, c.ok, err == nil, "%s %s: %v", c.text, c.currency, err)
	}
	_, err := schemas.FormatDecimal(big.NewRat(1, 3), 4)
	require.Error(t, err)
	_, err = schemas.FormatDecimal(nil, 4)
	require.Error(t, err)
}
