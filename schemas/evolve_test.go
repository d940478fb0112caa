package schemas_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	hamba "github.com/hamba/avro/v2"
	"github.com/stretchr/testify/require"
	twmb "github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"pgregory.net/rapid"

	"github.com/ebbline/ebb/schemas"
)

const (
	fieldA   = `{"name":"a","type":"string"}`
	optional = `{"name":"b","type":["null","string"],"default":null}`
)

func enum(rest string) string {
	return record(`{"name":"e","type":{"type":"enum","name":"E",` + rest + `}}`)
}

func typed(avro string) string { return record(`{"name":"a","type":` + avro + `}`) }

func long(logical string) string { return typed(`{"type":"long","logicalType":"` + logical + `"}`) }

// pair is a change of a schema. The columns avro and registry say what others think of it in both directions: the resolution rules as
// they are implemented by the decoder, and by the encoder's library, which stands for a registry that knows no logical types.
type pair struct {
	name     string
	old, new string
	reason   string // part of our refusal; empty: it may be released
	avro     bool
	registry bool
	why      string // for people
}

// evolutions is the table of docs/reference/schemas.md.
var evolutions = []pair{
	{"doc changed", record(fieldA), record(`{"name":"a","type":"string","doc":"x"}`), "", true, true, "a new version all the same: registries take it for another schema"},
	{"field with default added", record(fieldA), record(fieldA + "," + optional), "", true, true, "old readers pass over it, new ones take the default"},
	{"default given to a field", record(fieldA), record(`{"name":"a","type":"string","default":""}`), "", true, true, "nobody takes it: every version writes the field"},
	{"field moved", record(fieldA + "," + optional), record(optional + "," + fieldA), "", true, true, "fields are found by name"},
	{"symbol added, with a default symbol", enum(`"symbols":["NEW","PAID"],"default":"NEW"`), enum(`"symbols":["NEW","PAID","REFUNDED"],"default":"NEW"`), "", true, true, "old readers of the type take the default symbol, by the schema's own word"},
	{"uuid to string", typed(`{"type":"string","logicalType":"uuid"}`), typed(`"string"`), "", true, true, "text with or without its logical type"},

	{"field without default added", record(fieldA), record(fieldA + `,{"name":"b","type":"string"}`), "b: reader field has no default", false, false, "old data does not have it"},
	{"required field dropped", record(fieldA + `,{"name":"b","type":"string"}`), record(fieldA), "b: reader field has no default", false, false, "old readers need it"},
	{"optional field dropped", record(fieldA + "," + optional), record(fieldA), "dropped or renamed", true, true, "old readers would take the default for a value; keep it and say so in its doc"},
	{"field renamed without alias", record(fieldA), record(`{"name":"b","type":"string"}`), "reader field has no default", false, false, "old readers need the old name"},
	{"optional field renamed without alias", record(optional), record(`{"name":"c","type":["null","string"],"default":null}`), "dropped or renamed", true, true, "each version would read its default instead of the other's value"},
	{"field renamed with alias", record(fieldA), record(`{"name":"b","type":"string","aliases":["a"]}`), "reader field has no default", false, false, "old readers do not know the alias"},
	{"optional field renamed with alias", record(optional), record(`{"name":"c","type":["null","string"],"default":null,"aliases":["b"]}`), "renamed to c", true, true, "old readers do not know the alias and would take their default"},
	{"record renamed", record(fieldA), strings.Replace(record(fieldA), `"R"`, `"S"`, 1), "names do not match", false, false, "another type"},
	{"namespace changed", record(fieldA), strings.Replace(record(fieldA), `"t"`, `"u"`, 1), "was called t.R", true, true, "records are told apart by full name"},
	{"symbol added", enum(`"symbols":["NEW","PAID"]`), enum(`"symbols":["NEW","PAID","REFUNDED"]`), `"REFUNDED" not in reader`, false, false, "old readers stop at the new symbol, often long after the release"},
	{"symbol dropped", enum(`"symbols":["NEW","PAID"]`), enum(`"symbols":["NEW"]`), `"PAID" not in reader`, false, false, "old data has it"},
	{"symbol dropped, with a default symbol", enum(`"symbols":["NEW","PAID"],"default":"NEW"`), enum(`"symbols":["NEW"],"default":"NEW"`), "PAID is dropped", true, true, "old data would be read as the default symbol"},
	{"default symbol changed", enum(`"symbols":["NEW","PAID"],"default":"NEW"`), enum(`"symbols":["NEW","PAID"],"default":"PAID"`), "default symbol changes", true, true, "an unknown symbol would be read as either"},
	{"int to long", typed(`"int"`), typed(`"long"`), "int", false, false, "old readers cannot hold it"},
	{"long to int", typed(`"long"`), typed(`"int"`), "long", false, false, "old data does not fit"},
	{"long to double", typed(`"long"`), typed(`"double"`), "double", false, false, "digits would be lost"},
	{"string to bytes", typed(`"string"`), typed(`"bytes"`), "base64", true, true, "text would become base64 in JSON"},
	{"null allowed", typed(`"string"`), typed(`["null","string"]`), "null", false, false, "old readers cannot take null"},
	{"null forbidden", typed(`["null","string"]`), typed(`"string"`), "null", false, false, "old data has it"},
	{"branch added", typed(`["null","string"]`), typed(`["null","string","long"]`), "branch", false, false, "old readers cannot take it"},
	{"branches change places", typed(`["null","string"]`), typed(`["string","null"]`), "change places", true, true, "the default of a field is a value of the first branch"},
	{"branches of a number change places", typed(`["float","double"]`), typed(`["double","float"]`), "change places", true, true, "a number may go to another branch and lose digits"},
	{"default changed", record(`{"name":"a","type":"int","default":1}`), record(`{"name":"a","type":"int","default":2}`), "default changes", true, true, "data without the field would be read as two values"},
	{"default taken away", record(`{"name":"a","type":"int","default":1}`), record(`{"name":"a","type":"int"}`), "default changes", true, true, "data without the field could not be read"},
	{"scale changed", decimal(2), decimal(3), "precision or scale", false, true, "12.34 would become 1.234"},
	{"precision changed", decimal(2), strings.Replace(decimal(2), `:9`, `:12`, 1), "precision or scale", false, true, "Avro asks for the same; old readers refuse more digits"},
	{"decimal to bytes", decimal(2), typed(`"bytes"`), "meaning changes", true, true, "an amount would become base64"},
	{"decimal to text", decimal(2), typed(`"string"`), "meaning changes", true, true, "an amount would become unreadable text"},
	{"microseconds to milliseconds", long("timestamp-micros"), long("timestamp-millis"), "meaning changes", true, true, "times would be off by a factor of 1000"},
	{"instant to local time", long("timestamp-micros"), long("local-timestamp-micros"), "meaning changes", true, true, "times would be off by a time zone"},
	{"instant to number", long("timestamp-micros"), typed(`"long"`), "meaning changes", true, true, "a time would become a number in JSON"},
	{"amount to plain decimal", decimal(2), strings.Replace(decimal(2), `"scale"`, `"ebb.money":false,"scale"`, 1), "ebb.money", true, true, "12.30 would become 12.3000"},
	{"fixed of another size", typed(`{"type":"fixed","name":"F","size":4}`), typed(`{"type":"fixed","name":"F","size":5}`), "size", false, false, "the bytes after it would be read wrongly"},
	{"array to map", typed(`{"type":"array","items":"int"}`), typed(`{"type":"map","values":"int"}`), "array", false, false, "another type"},
	{"default null as text", record(fieldA), record(fieldA + `,{"name":"b","type":["string","null"],"default":"null"}`), `the text "null"`, true, true, "text, where null was meant"},
}

// Field case F46: what may not be released is refused, also where resolution rules or a registry let it pass.
func TestEvolutions(t *testing.T) {
	t.Parallel()
	for _, p := range evolutions {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			err := schemas.CheckReleases("s", []schemas.Release{{Version: 1, Schema: p.old}}, p.new)
			if p.reason == "" {
				var unreleased *schemas.UnreleasedError
				require.ErrorAs(t, err, &unreleased)
				require.Equal(t, 2, unreleased.Version)
				readsBack(t, p.old, p.new)
				readsBack(t, p.new, p.old)
			} else {
				var conflict *schemas.IncompatibleError
				require.ErrorAs(t, err, &conflict)
				require.ErrorContains(t, err, p.reason)
			}
			require.Equal(t, p.avro, avroLets(p.old, p.new), "resolution rules")
			require.Equal(t, p.registry, registryLets(t, p.old, p.new), "registry")
		})
	}
}

func avroLets(before, after string) bool {
	o, n := twmb.MustParse(before), twmb.MustParse(after)
	return twmb.CheckCompatibility(o, n) == nil && twmb.CheckCompatibility(n, o) == nil
}

func registryLets(t *testing.T, before, after string) bool {
	t.Helper()
	parse := func(text string) hamba.Schema {
		s, err := hamba.ParseBytesWithCache([]byte(text), "", &hamba.SchemaCache{})
		require.NoError(t, err)
		return s
	}
	o, n := parse(before), parse(after)
	return hamba.NewSchemaCompatibility().Compatible(o, n) == nil && hamba.NewSchemaCompatibility().Compatible(n, o) == nil
}

// readsBack: what a check lets pass, the decoder reads; a checker alone could be wrong.
func readsBack(t *testing.T, writer, reader string) {
	t.Helper()
	w := twmb.MustParse(writer)
	resolved, err := twmb.Resolve(w, twmb.MustParse(reader))
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		body, err := w.AppendEncode(nil, drawValue(t, w.Root(), "v"))
		require.NoError(t, err)
		var got any
		rest, err := resolved.Decode(body, &got)
		require.NoError(t, err)
		require.Empty(t, rest)
	})
}

var update = flag.Bool("update", false, "write the table of docs/reference/schemas.md")

const (
	referenceFile = "../docs/reference/schemas.md"
	tableBegins   = "<!-- the table -->\n"
	tableEnds     = "<!-- end of the table -->\n"
)

// TestReferenceTable holds the table of the reference against the pairs above.
func TestReferenceTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), tableBegins)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, tableEnds)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(referenceFile, []byte(before+tableBegins+pairsTable()+tableEnds+after), 0o600))
		return
	}
	require.Equal(t, pairsTable(), table, "go test ./schemas -run ReferenceTable -update writes it")
}

func pairsTable() string {
	mark := map[bool]string{true: "passes", false: "refused"}
	var b strings.Builder
	b.WriteString("| change | here | resolution rules | checker without logical types | why |\n|---|---|---|---|---|\n")
	for _, p := range evolutions {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.name, mark[p.reason == ""], mark[p.avro], mark[p.registry], p.why)
	}
	return b.String()
}

func TestReleased(t *testing.T) {
	t.Parallel()
	require.NoError(t, schemas.CheckReleased())
	for _, m := range schemas.Messages() {
		all := schemas.Releases(m.Subject)
		require.Len(t, all, m.Version, "the newest release is the present schema")
		for i, later := range all {
			for _, earlier := range all[:i] {
				require.NoError(t, schemas.Evolves(earlier.Schema, later.Schema))
			}
		}
	}
	require.Empty(t, schemas.Releases("nope"))
}

// A schema that was changed and not released fails the check, which names the command.
func TestChangedSchemaHasToBeReleased(t *testing.T) {
	t.Parallel()
	m := message(t, "OrderCreated")
	released := schemas.Releases(m.Subject)
	changed := strings.Replace(m.Schema, `"doc": "Order number`, `"doc": "The order number`, 1)
	require.NotEqual(t, m.Schema, changed)
	err := schemas.CheckReleases(m.Subject, released, changed)
	require.ErrorContains(t, err, "go generate ./schemas")
	require.ErrorContains(t, err, "schemas/released/outbox.event.order-ebb.OrderCreated/v2.avsc")
	require.NoError(t, schemas.CheckReleases(m.Subject, released, strings.ReplaceAll(m.Schema, "\n", "\n ")), "white space is no change")
	require.Error(t, schemas.CheckReleases(m.Subject, nil, m.Schema))
}

// Every release is looked at, not only the newest: what was let go of once may not come back as something else.
func TestEveryReleaseIsCompared(t *testing.T) {
	t.Parallel()
	all := []schemas.Release{{Version: 1, Schema: record(fieldA + "," + optional)}, {Version: 2, Schema: record(fieldA)}}
	err := schemas.CheckReleases("s", all, record(fieldA+`,{"name":"b","type":["null","long"],"default":null}`))
	var conflict *schemas.IncompatibleError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, 1, conflict.Version)
}

func TestWriteReleases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	written, err := schemas.WriteReleases(dir)
	require.NoError(t, err)
	require.Len(t, written, len(schemas.Messages()))
	written, err = schemas.WriteReleases(dir)
	require.NoError(t, err)
	require.Empty(t, written, "it can be repeated")

	m := message(t, "OrderCreated")
	first := filepath.Join(dir, m.Subject, "v1.avsc")
	text, err := os.ReadFile(first)
	require.NoError(t, err)
	require.Equal(t, m.Schema, string(text))

	older := strings.Replace(m.Schema, `"doc": "Order number`, `"doc": "The order number`, 1)
	require.NoError(t, os.WriteFile(first, []byte(older), 0o600))
	written, err = schemas.WriteReleases(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, m.Subject, "v2.avsc")}, written)

	other := message(t, "SagaParked")
	require.NoError(t, os.WriteFile(filepath.Join(dir, m.Subject, "v1.avsc"), []byte(other.Schema), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, other.Subject, "v1.avsc")))
	written, err = schemas.WriteReleases(dir)
	var conflict *schemas.IncompatibleError
	require.ErrorAs(t, err, &conflict)
	require.Empty(t, written, "nothing is written beside a conflict")

	require.NoError(t, os.Remove(filepath.Join(dir, m.Subject, "v1.avsc")))
	_, err = schemas.WriteReleases(dir)
	require.ErrorContains(t, err, "v1.avsc to v1.avsc", "a gap in the numbers")
	_, err = schemas.WriteReleases(filepath.Join(dir, "nowhere"))
	require.Error(t, err)
}

// A writer whose schema says something else is refused with its id and never misread: 12.34 stays 12.34, and a millisecond no microsecond.
func TestForeignVersionsAreNotMisread(t *testing.T) {
	t.Parallel()
	m := message(t, "OrderCreated")
	for i, c := range []struct{ name, from, to, reason string }{
		{"scale", `"scale": 4`, `"scale": 3`, "precision or scale"},
		{"unit", "timestamp-micros", "timestamp-millis", "meaning changes"},
		{"amount without logical type", `"logicalType": "decimal",`, ``, "meaning changes"},
		{"text as bytes", `"name": "shippingType",
      "type": "string"`, `"name": "shippingType",
      "type": "bytes"`, "base64"},
		{"field missing", `"name": "currency"`, `"name": "coin"`, "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			codec, registry := newCodec(t)
			foreign := strings.Replace(m.Schema, c.from, c.to, 1)
			require.NotEqual(t, m.Schema, foreign)
			id := 600 + i
			registry.seed(t, id, foreign)
			w := twmb.MustParse(foreign)
			value := map[string]any{"orderId": int64(1), "customerId": "c", "shippingType": "x", "createdAt": at.UnixMilli()}
			value["totalAmount"], value["currency"], value["coin"] = rat(t, "12.34"), "USD", "USD"
			if c.name == "amount without logical type" {
				value["totalAmount"] = []byte{1}
			}
			if c.name == "text as bytes" {
				value["shippingType"] = []byte("x")
			}
			body, err := w.AppendEncode(nil, value)
			require.NoError(t, err)
			_, err = schemas.DecodeInto[schemas.OrderCreated](t.Context(), codec, wire(id, body))
			var decode *schemas.DecodeError
			require.ErrorAs(t, err, &decode)
			require.Equal(t, schemas.ReasonIncompatible, decode.Reason)
			require.Equal(t, id, decode.SchemaID)
			require.ErrorContains(t, err, c.reason)

			got, err := codec.Decode(t.Context(), wire(id, body)) // as the writer meant it
			require.NoError(t, err)
			if c.name == "scale" {
				require.Contains(t, string(got.JSON), `"totalAmount":12.34,`)
			}
		})
	}
}

// A symbol that a reader does not know is written as the writer meant it: values are read with the writer's schema.
func TestUnknownSymbolIsWrittenAsItIs(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	registry.seed(t, 620, enum(`"symbols":["NEW","PAID","REFUNDED"],"default":"NEW"`))
	got, err := codec.Decode(t.Context(), wire(620, []byte{4}))
	require.NoError(t, err)
	require.JSONEq(t, `{"e":"REFUNDED"}`, string(got.JSON))
	_, err = codec.Decode(t.Context(), wire(620, []byte{6}))
	var decode *schemas.DecodeError
	require.ErrorAs(t, err, &decode)
	require.Equal(t, 620, decode.SchemaID)
}

func TestCheckAgainstRegistry(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	c := newClient(t, registry.url)
	require.NoError(t, c.Check(t.Context()), "an empty registry has no conflict")
	_, err := c.Register(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Check(t.Context()))

	m := message(t, "OrderCreated")
	other := strings.Replace(m.Schema, `"scale": 4`, `"scale": 3`, 1)
	registry.SeedSchema(m.Subject, 2, 900, sr.Schema{Schema: other})
	var conflict *schemas.IncompatibleError
	require.ErrorAs(t, c.Check(t.Context()), &conflict)
	require.Equal(t, m.Subject, conflict.Subject)
	require.Equal(t, 2, conflict.Version)

	registry.failWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	var away *schemas.UnavailableError
	require.ErrorAs(t, c.Check(t.Context()), &away)
}
