package schemas_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ebbline/ebb/schemas"
)

func TestStrictJSON(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	for name, text := range map[string]string{
		"empty":                     `{}`,
		"white space":               " \r\n\t{ \"a\" : 1 } \n",
		"numbers digit for digit":   `{"id":9007199254740993,"amount":12.340,"e":1.5E+10,"z":-0,"n":1e-400}`,
		"long number":               `{"a":` + strings.Repeat("7", 256) + `}`,
		"same key in other objects": `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`,
		"keys that differ":          `{"a":1,"A":2,"a ":3,"":4}`,
		"pair of surrogates":        `{"a":"\ud83d\ude00","\ud83d\ude00":1,"b":"\\ud83d"}`,
		"escapes":                   `{"a\"b":"\\","c":"\u0000\n","d\\":1}`,
		"depth":                     strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
		"text":                      "{\"a\":\"<b>\u2028é\"}",
		"values":                    `{"a":true,"b":false,"c":null,"d":[1,[2,"x",{}]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := codec.Decode(t.Context(), []byte(text))
			require.NoError(t, err)
			require.Equal(t, text, string(got.JSON))
			require.Zero(t, got.SchemaID)
		})
	}
}

// A member that is there twice is found wherever it is and however it is written, and nothing else is refused.
func TestMemberTwiceIsFound(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringOfN(rapid.RuneFrom([]rune(`ab"\é😀`)), 0, 3, -1), 1, 5, rapid.ID[string]).Draw(t, "keys")
		twice := rapid.Bool().Draw(t, "twice")
		if twice {
			keys = append(keys, rapid.SampledFrom(keys).Draw(t, "again"))
		}
		var members []string
		for i, k := range keys {
			quoted, err := json.Marshal(k)
			require.NoError(t, err)
			if i == len(keys)-1 && rapid.Bool().Draw(t, "as escapes") {
				quoted = []byte(`"` + strings.ReplaceAll(strings.ReplaceAll(string(quoted[1:len(quoted)-1]), "a", `\u0061`), "b", `\u0062`) + `"`)
			}
			members = append(members, string(quoted)+":"+rapid.SampledFrom([]string{"1", `"a"`, "{}", `[{"a":1}]`, "null"}).Draw(t, "value"))
		}
		text := `{"outer":[{` + strings.Join(members, ",") + `}]}`
		_, err := codec.Decode(ctx, []byte(text))
		if !twice {
			require.NoError(t, err, text)
			return
		}
		var decode *schemas.DecodeError
		require.ErrorAs(t, err, &decode, text)
		require.Equal(t, schemas.ReasonDuplicate, decode.Reason, text)
	})
}

func TestFormats(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	avro, err := codec.Encode(t.Context(), orderCreated(t))
	require.NoError(t, err)
	asked := registry.asked.Load()
	const object = `{"orderId":9007199254740993}`
	quoted := `"{\"orderId\":9007199254740993}"`
	for _, c := range []struct {
		name    string
		format  schemas.Format
		payload string
		json    string
		reason  schemas.Reason
	}{
		{"auto avro", schemas.FormatAuto, string(avro), samples(t)["OrderCreated"].json, ""},
		{"auto object", schemas.FormatAuto, object, object, ""},
		{"auto text", schemas.FormatAuto, quoted, "", schemas.ReasonNotObject},
		{"avro", schemas.FormatAvro, string(avro), samples(t)["OrderCreated"].json, ""},
		{"avro object", schemas.FormatAvro, object, "", schemas.ReasonFormat},
		{"avro empty", schemas.FormatAvro, "", "", schemas.ReasonEmpty},
		{"json object", schemas.FormatJSON, object, object, ""},
		{"json in a text", schemas.FormatJSON, quoted, object, ""},
		{"json avro", schemas.FormatJSON, string(avro), "", schemas.ReasonFormat},
		{"json empty", schemas.FormatJSON, "", "", schemas.ReasonEmpty},
		{"json empty text", schemas.FormatJSON, `""`, "", schemas.ReasonEmpty},
		{"json list in a text", schemas.FormatJSON, `"[]"`, "", schemas.ReasonNotObject},
		{"json text in a text", schemas.FormatJSON, `"\"{}\""`, "", schemas.ReasonNotObject},
		{"json cut text", schemas.FormatJSON, quoted[:9], "", schemas.ReasonFormat},
		{"json half a surrogate", schemas.FormatJSON, `"{\"a\":\"\ud800\"}"`, "", schemas.ReasonNotObject},
		{"json too large", schemas.FormatJSON, strings.Repeat(" ", schemas.MaxPayload+1), "", schemas.ReasonTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := codec.As(c.format).Decode(t.Context(), []byte(c.payload))
			if c.reason == "" {
				require.NoError(t, err)
				require.Equal(t, c.json, string(got.JSON))
				return
			}
			var decode *schemas.DecodeError
			require.ErrorAs(t, err, &decode)
			require.Equal(t, c.reason, decode.Reason, err.Error())
		})
	}
	require.Equal(t, asked, registry.asked.Load(), "JSON asks no registry")

	for text, want := range map[string]schemas.Format{"": schemas.FormatAuto, "auto": schemas.FormatAuto, "avro": schemas.FormatAvro, "json": schemas.FormatJSON} {
		got, err := schemas.ParseFormat(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = schemas.ParseFormat("xml")
	require.ErrorContains(t, err, "auto, avro or json")
}
