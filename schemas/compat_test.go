package schemas_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
)

func record(fields string) string {
	return `{"type":"record","name":"R","namespace":"t","fields":[` + fields + `]}`
}

func decimal(scale int) string {
	return record(fmt.Sprintf(`{"name":"a","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":%d}}`, scale))
}

func TestCompatible(t *testing.T) {
	t.Parallel()
	const a = `{"name":"a","type":"string"}`
	enum := func(symbols string) string {
		return record(`{"name":"e","type":{"type":"enum","name":"E","symbols":[` + symbols + `]}}`)
	}
	for name, c := range map[string]struct {
		old, new string
		ok       bool
	}{
		"same":                   {record(a), record(a), true},
		"field with default":     {record(a), record(a + `,{"name":"b","type":["null","string"],"default":null}`), true},
		"field without default":  {record(a), record(a + `,{"name":"b","type":"string"}`), false},
		"required field dropped": {record(a + `,{"name":"b","type":"string"}`), record(a), false},
		"doc only":               {record(a), `{"type":"record","name":"R","namespace":"t","doc":"x","fields":[` + a + `]}`, true},
		"enum symbol added":      {enum(`"NEW","PAID"`), enum(`"NEW","PAID","REFUNDED"`), false},
		"enum symbol dropped":    {enum(`"NEW","PAID"`), enum(`"NEW"`), false},
		"scale changed":          {decimal(2), decimal(3), false},
		"decimal to bytes":       {decimal(2), record(`{"name":"a","type":"bytes"}`), false},
		"uuid to string":         {record(`{"name":"a","type":{"type":"string","logicalType":"uuid"}}`), record(a), true},
		"micros to millis": {
			record(`{"name":"a","type":{"type":"long","logicalType":"timestamp-micros"}}`),
			record(`{"name":"a","type":{"type":"long","logicalType":"timestamp-millis"}}`), false,
		},
		"micros to long": {record(`{"name":"a","type":{"type":"long","logicalType":"timestamp-micros"}}`), record(`{"name":"a","type":"long"}`), false},
		"unit within a union": {
			record(`{"name":"a","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null}`),
			record(`{"name":"a","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null}`), false,
		},
		"unit within an array": {
			record(`{"name":"a","type":{"type":"array","items":{"type":"int","logicalType":"date"}}}`),
			record(`{"name":"a","type":{"type":"array","items":"int"}}`), false,
		},
		"recursive":             {recursiveSchema, recursiveSchema, true},
		"renamed without alias": {record(a), record(`{"name":"b","type":"string"}`), false},
		"record renamed":        {record(a), `{"type":"record","name":"S","namespace":"t","fields":[` + a + `]}`, false},
		"int to long":           {record(`{"name":"a","type":"int"}`), record(`{"name":"a","type":"long"}`), false},
		"null allowed":          {record(a), record(`{"name":"a","type":["null","string"]}`), false},
		"not a schema":          {record(a), `{`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := schemas.Compatible(c.old, c.new)
			if c.ok {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	ref := `{"type":"record","name":"Ref","namespace":"t","fields":[{"name":"x","type":"int"}]}`
	for name, c := range map[string]struct {
		source schemas.Source
		ok     bool
	}{
		"fine":                  {schemas.Source{Text: record(`{"name":"a","type":"string"}`)}, true},
		"default null":          {schemas.Source{Text: record(`{"name":"a","type":["null","string"],"default":null}`)}, true},
		"default text null":     {schemas.Source{Text: record(`{"name":"a","type":["null","string"],"default":"null"}`)}, false},
		"default text null too": {schemas.Source{Text: record(`{"name":"a","type":["string","null"],"default":"null"}`)}, false},
		"nested text null":      {schemas.Source{Text: record(`{"name":"r","type":{"type":"array","items":` + `{"type":"record","name":"I","fields":[{"name":"a","type":["string","null"],"default":"null"}]}` + `}}`)}, false},
		"reference":             {schemas.Source{Text: record(`{"name":"a","type":"t.Ref"}`), References: []string{ref}}, true},
		"reference missing":     {schemas.Source{Text: record(`{"name":"a","type":"t.Ref"}`)}, false},
		"reference broken":      {schemas.Source{Text: record(`{"name":"a","type":"t.Ref"}`), References: []string{"{"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := schemas.Validate(c.source)
			if c.ok {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
}
