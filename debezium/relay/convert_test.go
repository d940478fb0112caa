package relay

import (
	"encoding/hex"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"
)

func TestHeaderConversion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		oid    uint32
		typmod int32
		in     string // hexadecimal, as PostgreSQL sends it in binary
		want   string
	}{
		"uuid":                      {pgtype.UUIDOID, -1, "4D47E19004024048BC2C89DD54343CDC", "4d47e190-0402-4048-bc2c-89dd54343cdc"},
		"text":                      {pgtype.TextOID, -1, "c3a9", "é"},
		"empty text":                {pgtype.TextOID, -1, "", ""},
		"smallint":                  {pgtype.Int2OID, -1, "8000", "-32768"},
		"integer":                   {pgtype.Int4OID, -1, "ffffffff", "-1"},
		"bigint beyond a double":    {pgtype.Int8OID, -1, "0020000000000001", "9007199254740993"},
		"smallest bigint":           {pgtype.Int8OID, -1, "8000000000000000", "-9223372036854775808"},
		"true":                      {pgtype.BoolOID, -1, "01", "true"},
		"false":                     {pgtype.BoolOID, -1, "00", "false"},
		"bytes":                     {pgtype.ByteaOID, -1, "0102fe", "AQL+"},
		"jsonb":                     {pgtype.JSONBOID, -1, "017b7d", "{}"},
		"json":                      {pgtype.JSONOID, -1, "7b7d", "{}"},
		"date":                      {pgtype.DateOID, -1, "00000000", "10957"},
		"timestamp":                 {pgtype.TimestampOID, -1, "0000000000000001", "946684800000001"},
		"timestamp(3)":              {pgtype.TimestampOID, 3, "00000000000003e8", "946684800001"},
		"timestamp before 1970":     {pgtype.TimestampOID, 3, "fffca2fec4c81e0c", "-1"},
		"timestamptz":               {pgtype.TimestamptzOID, -1, "00000000000186a0", "2000-01-01T00:00:00.100000Z"},
		"timestamptz(3)":            {pgtype.TimestamptzOID, 3, "00000000000186a0", "2000-01-01T00:00:00.100Z"},
		"timestamptz(0)":            {pgtype.TimestamptzOID, 0, "0000000000000000", "2000-01-01T00:00:00Z"},
		"timestamptz for ever":      {pgtype.TimestamptzOID, -1, "7fffffffffffffff", "infinity"},
		"timestamptz since ever":    {pgtype.TimestamptzOID, -1, "8000000000000000", "-infinity"},
		"a name":                    {pgtype.NameOID, -1, "6e", "n"},
		"text of a limited length":  {pgtype.VarcharOID, 14, "6e", "n"},
		"text of an exact length":   {pgtype.BPCharOID, 6, "6e20", "n "},
		"the largest positive date": {pgtype.DateOID, -1, "7ffffffe", "2147494603"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := hex.DecodeString(test.in)
			require.NoError(t, err)
			convert, ok := headerConverter(test.oid, test.typmod)
			require.True(t, ok)
			got, err := convert(in)
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
			require.NotNil(t, got)
		})
	}
}

func TestConversionRefusesWhatItCannotSay(t *testing.T) {
	t.Parallel()
	for _, oid := range []uint32{
		pgtype.UUIDOID, pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.BoolOID, pgtype.JSONBOID,
		pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID,
	} {
		convert, ok := headerConverter(oid, -1)
		require.True(t, ok)
		for _, in := range [][]byte{{}, {9, 9, 9}} {
			_, err := convert(in)
			require.Error(t, err, "OID %d, %d bytes", oid, len(in))
		}
	}
	convert, _ := headerConverter(pgtype.TimestampOID, -1)
	_, err := convert([]byte{0x7f, 255, 255, 255, 255, 255, 255, 255})
	require.ErrorIs(t, err, errInfinite)
	for _, oid := range []uint32{pgtype.NumericOID, pgtype.Float8OID, pgtype.TextArrayOID, 99999} {
		_, ok := headerConverter(oid, -1)
		require.False(t, ok, "OID %d has no agreed text", oid)
	}
	for _, oid := range []uint32{pgtype.ByteaOID, pgtype.BoolOID, pgtype.TimestamptzOID} {
		_, ok := keyConverter(oid)
		require.False(t, ok, "OID %d is no key", oid)
	}
}
