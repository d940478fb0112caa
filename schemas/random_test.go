package schemas_test

import (
	"fmt"
	"math/big"
	"time"

	twmb "github.com/twmb/avro"
	"pgregory.net/rapid"
)

// drawValue draws a value of a schema in the decoder's generic form, with unions tagged.
func drawValue(t *rapid.T, s *twmb.SchemaNode, label string) any {
	switch {
	case s.LogicalType == "decimal":
		return drawDecimal(t, s.Precision, s.Scale, label)
	case s.LogicalType == "uuid":
		return drawUUID(t, label)
	case s.Type == "long" && s.LogicalType != "":
		return time.UnixMicro(rapid.Int64Range(-62_000_000_000_000_000, 250_000_000_000_000_000).Draw(t, label) / 1000 * 1000).UTC()
	}
	switch s.Type {
	case "null":
		return nil
	case "boolean":
		return rapid.Bool().Draw(t, label)
	case "int":
		return rapid.Int32().Draw(t, label)
	case "long":
		return rapid.Int64().Draw(t, label)
	case "float":
		return rapid.Float32().Draw(t, label)
	case "double":
		return rapid.Float64().Draw(t, label)
	case "string":
		return rapid.String().Draw(t, label)
	case "bytes":
		return rapid.SliceOf(rapid.Byte()).Draw(t, label)
	case "fixed":
		return rapid.SliceOfN(rapid.Byte(), s.Size, s.Size).Draw(t, label)
	case "enum":
		return rapid.SampledFrom(s.Symbols).Draw(t, label)
	case "array":
		items := make([]any, rapid.IntRange(0, 3).Draw(t, label+" length"))
		for i := range items {
			items[i] = drawValue(t, s.Items, fmt.Sprintf("%s[%d]", label, i))
		}
		return items
	case "union":
		branch := &s.Branches[rapid.IntRange(0, len(s.Branches)-1).Draw(t, label+" branch")]
		if branch.Type == "null" {
			return nil
		}
		return map[string]any{branch.Type: drawValue(t, branch, label)}
	case "record":
		out := map[string]any{}
		for i := range s.Fields {
			out[s.Fields[i].Name] = drawValue(t, &s.Fields[i].Type, label+"."+s.Fields[i].Name)
		}
		return out
	}
	panic("no values of " + s.Type + " are drawn")
}

func drawDecimal(t *rapid.T, precision, scale int, label string) *big.Rat {
	digits := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), 1, precision, -1).Draw(t, label)
	unscaled, _ := new(big.Int).SetString(digits, 10)
	if rapid.Bool().Draw(t, label+" sign") {
		unscaled.Neg(unscaled)
	}
	return new(big.Rat).SetFrac(unscaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
}

func drawUUID(t *rapid.T, label string) string {
	b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
