package schemas_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
)

const listSchema = `{"type":"record","name":"L","namespace":"t","fields":[{"name":"xs","type":{"type":"array","items":"null"}},{"name":"m","type":{"type":"map","values":"null"}}]}`

const recursiveSchema = `{"type":"record","name":"R","namespace":"t","fields":[{"name":"next","type":["null","R"]}]}`

const textSchema = `{"type":"record","name":"T","namespace":"t","fields":[{"name":"inner","type":{"type":"record","name":"I","fields":[{"name":"id","type":{"type":"string","logicalType":"uuid"}}]}}]}`

func varint(v int64) []byte { return binary.AppendVarint(nil, v) }

func TestPoison(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	registry.seed(t, 310, listSchema)
	registry.seed(t, 311, recursiveSchema)
	registry.seed(t, 312, textSchema)
	registry.seed(t, 313, `"string"`)
	registry.seed(t, 314, `{"type":"record","name":"Broken","fields":[{"name":"x","type":"nowhere"}]}`)
	good, err := codec.Encode(t.Context(), orderCreated(t))
	require.NoError(t, err)
	secret := append([]byte{2*36 - 0}, []byte("4111-1111-1111-1111-secret-secret-ab")...)

	for name, c := range map[string]struct {
		payload []byte
		reason  schemas.Reason
	}{
		"null":                  {nil, schemas.ReasonEmpty},
		"empty":                 {[]byte{}, schemas.ReasonEmpty},
		"white space":           {[]byte(" \n"), schemas.ReasonEmpty},
		"cut JSON":              {[]byte(`{"orderId":`), schemas.ReasonTruncated},
		"bad JSON":              {[]byte(`{"orderId":x1}`), schemas.ReasonJSON},
		"two objects":           {[]byte(`{}{}`), schemas.ReasonJSON},
		"JSON not in UTF-8":     {[]byte("{\"a\":\"\xff\"}"), schemas.ReasonJSON},
		"member twice":          {[]byte(`{"a":1,"b":{"a":2},"a":3}`), schemas.ReasonDuplicate},
		"member twice, escaped": {[]byte(`{"amount":1,"\u0061mount":2}`), schemas.ReasonDuplicate},
		"member twice, deep":    {[]byte(`{"a":[{"b":1},{"b":{"c":1,"c":[]}}]}`), schemas.ReasonDuplicate},
		"half a surrogate":      {[]byte(`{"a":"\ud83d"}`), schemas.ReasonJSON},
		"second half first":     {[]byte(`{"a":"\ude00\ud83d"}`), schemas.ReasonJSON},
		"half in a key":         {[]byte(`{"\ud83dx":1}`), schemas.ReasonJSON},
		"JSON nesting":          {[]byte(strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101)), schemas.ReasonTooLarge},
		"array nesting":         {[]byte(`{"a":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}"), schemas.ReasonTooLarge},
		"exponent":              {[]byte(`{"a":1e999999999}`), schemas.ReasonTooLarge},
		"small exponent":        {[]byte(`{"a":1E-401}`), schemas.ReasonTooLarge},
		"endless exponent":      {[]byte(`{"a":1e` + strings.Repeat("9", 100) + `}`), schemas.ReasonTooLarge},
		"long number":           {[]byte(`{"a":[-` + strings.Repeat("7", 256) + `]}`), schemas.ReasonTooLarge},
		"array":                 {[]byte(`[]`), schemas.ReasonNotObject},
		"number":                {[]byte(`42`), schemas.ReasonNotObject},
		"json null":             {[]byte(`null`), schemas.ReasonNotObject},
		"text":                  {[]byte(`hello`), schemas.ReasonFormat},
		"byte order mark":       {[]byte("\xef\xbb\xbf{}"), schemas.ReasonFormat},
		"header only":           {[]byte{0, 0, 0}, schemas.ReasonTruncated},
		"id zero":               {wire(0, []byte{1}), schemas.ReasonFormat},
		"negative id":           {wire(-1, []byte{1}), schemas.ReasonFormat},
		"cut body":              {good[:len(good)-3], schemas.ReasonTruncated},
		"no body":               {good[:5], schemas.ReasonTruncated},
		"trailing":              {append(append([]byte{}, good...), 0), schemas.ReasonTrailing},
		"too large":             {make([]byte, schemas.MaxPayload+1), schemas.ReasonTooLarge},
		"hostile array":         {wire(310, append(varint(1<<62), 0)), schemas.ReasonInvalid},
		"hostile nulls":         {wire(310, append(varint(1<<31), 0, 0)), schemas.ReasonInvalid},
		"hostile negative":      {wire(310, append(varint(-1<<63), 0, 0)), schemas.ReasonInvalid},
		"hostile map":           {wire(310, append([]byte{0}, varint(1<<40)...)), schemas.ReasonInvalid},
		"nesting":               {wire(311, append([]byte(strings.Repeat("\x02", 900_000)), 0)), schemas.ReasonInvalid},
		"unknown union branch":  {wire(311, []byte{8}), schemas.ReasonInvalid},
		"bad uuid":              {wire(312, secret), schemas.ReasonInvalid},
		"not a record":          {wire(313, []byte{2, 'a'}), schemas.ReasonNotObject},
		"broken schema":         {wire(314, []byte{0}), schemas.ReasonSchema},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := codec.Decode(t.Context(), c.payload)
			var decode *schemas.DecodeError
			require.ErrorAs(t, err, &decode)
			require.Equal(t, c.reason, decode.Reason, err.Error())
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "x1")
		})
	}

	t.Run("foreign bytes name an unknown schema", func(t *testing.T) {
		t.Parallel()
		_, err := codec.Decode(t.Context(), []byte{0, 0, 0, 0xff, 0xff, 1})
		var unknown *schemas.UnknownSchemaError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, 65535, unknown.ID)
	})
	t.Run("path", func(t *testing.T) {
		t.Parallel()
		_, err := codec.Decode(t.Context(), wire(312, secret))
		var decode *schemas.DecodeError
		require.ErrorAs(t, err, &decode)
		require.Equal(t, "inner.id", decode.Path)
		require.Equal(t, 312, decode.SchemaID)
	})
}

func TestDecodeMessageRefusesForeignRecords(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	registry.seed(t, 320, listSchema)
	_, err := codec.DecodeMessage(t.Context(), wire(320, []byte{0, 0}))
	var decode *schemas.DecodeError
	require.ErrorAs(t, err, &decode)
	require.Equal(t, schemas.ReasonIncompatible, decode.Reason)
	_, err = codec.DecodeMessage(t.Context(), []byte(`{}`))
	require.ErrorAs(t, err, &decode)
	require.Equal(t, schemas.ReasonFormat, decode.Reason)
}
