package relay

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// convertFunc turns the binary form of a column value into the bytes that Debezium's converters would write. It is not
// called for NULL. It may return its argument.
type convertFunc func(value []byte) ([]byte, error)

// errShape says that a value does not have the form its type promises. The value itself is never shown.
func errShape(kind string, value []byte) error {
	return fmt.Errorf("%d bytes are not a %s in binary form", len(value), kind)
}

// headerConverter gives the conversion of SimpleHeaderConverter for a type, as the text of a value:
// strings raw, numbers in decimal, bytes in standard Base64, times as Debezium's adaptive mode represents them.
func headerConverter(oid uint32, typmod int32) (convertFunc, bool) {
	switch oid {
	case pgtype.BoolOID:
		return boolText, true
	case pgtype.ByteaOID:
		return base64Text, true
	case pgtype.DateOID:
		return dateDays, true
	case pgtype.TimestampOID:
		// Up to three fractional digits Debezium counts in milliseconds, beyond in microseconds.
		if typmod >= 0 && typmod <= 3 {
			return timestampMillis, true
		}
		return timestampMicros, true
	case pgtype.TimestamptzOID:
		return zonedTimestamp(typmod), true
	default:
		return keyConverter(oid)
	}
}

// keyConverter gives the conversion of StringConverter for a type that makes sense as a record key.
func keyConverter(oid uint32) (convertFunc, bool) {
	switch oid {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.JSONOID:
		return raw, true
	case pgtype.JSONBOID:
		return jsonbText, true
	case pgtype.UUIDOID:
		return uuidText, true
	case pgtype.Int2OID:
		return int2Text, true
	case pgtype.Int4OID:
		return int4Text, true
	case pgtype.Int8OID:
		return int8Text, true
	default:
		return nil, false
	}
}

func raw(v []byte) ([]byte, error) { return v, nil }

func jsonbText(v []byte) ([]byte, error) {
	if len(v) < 1 || v[0] != 1 {
		return nil, errShape("jsonb", v)
	}
	return v[1:], nil
}

func uuidText(v []byte) ([]byte, error) {
	if len(v) != 16 {
		return nil, errShape("uuid", v)
	}
	out := make([]byte, 36)
	hex.Encode(out[0:8], v[0:4])
	hex.Encode(out[9:13], v[4:6])
	hex.Encode(out[14:18], v[6:8])
	hex.Encode(out[19:23], v[8:10])
	hex.Encode(out[24:36], v[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return out, nil
}

func int2Text(v []byte) ([]byte, error) {
	if len(v) != 2 {
		return nil, errShape("smallint", v)
	}
	return strconv.AppendInt(nil, int64(int16(binary.BigEndian.Uint16(v))), 10), nil
}

func int4Text(v []byte) ([]byte, error) {
	n, err := int4(v)
	return strconv.AppendInt(nil, int64(n), 10), err
}

func int4(v []byte) (int32, error) {
	if len(v) != 4 {
		return 0, errShape("integer", v)
	}
	return int32(binary.BigEndian.Uint32(v)), nil
}

func int8Text(v []byte) ([]byte, error) {
	n, err := int8Value(v)
	return strconv.AppendInt(nil, n, 10), err
}

func int8Value(v []byte) (int64, error) {
	if len(v) != 8 {
		return 0, errShape("64-bit number", v)
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

func boolText(v []byte) ([]byte, error) {
	if len(v) != 1 {
		return nil, errShape("boolean", v)
	}
	return strconv.AppendBool(nil, v[0] != 0), nil
}

func base64Text(v []byte) ([]byte, error) {
	return base64.StdEncoding.AppendEncode(make([]byte, 0, base64.StdEncoding.EncodedLen(len(v))), v), nil
}

// PostgreSQL counts from 2000-01-01, everyone else from 1970-01-01.
const (
	epochDays   = 10957
	epochMicros = epochDays * 24 * 60 * 60 * 1_000_000
)

var errInfinite = errors.New("an infinite date or time has no place in a record")

func dateDays(v []byte) ([]byte, error) {
	n, err := int4(v)
	if err != nil {
		return nil, errShape("date", v)
	}
	if n == math.MaxInt32 || n == math.MinInt32 {
		return nil, errInfinite
	}
	return strconv.AppendInt(nil, int64(n)+epochDays, 10), nil
}

func unixMicros(v []byte) (int64, error) {
	n, err := int8Value(v)
	if err != nil {
		return 0, errShape("timestamp", v)
	}
	if n == math.MaxInt64 || n == math.MinInt64 {
		return 0, errInfinite
	}
	return n + epochMicros, nil
}

func timestampMicros(v []byte) ([]byte, error) {
	micros, err := unixMicros(v)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, micros, 10), nil
}

func timestampMillis(v []byte) ([]byte, error) {
	micros, err := unixMicros(v)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, time.UnixMicro(micros).UnixMilli(), 10), nil
}

// zonedTimestamp writes ISO 8601 in UTC with as many fractional digits as the column has, which is six unless declared.
func zonedTimestamp(typmod int32) convertFunc {
	digits := 6
	if typmod >= 0 && typmod < 6 {
		digits = int(typmod)
	}
	layout := "2006-01-02T15:04:05"
	if digits > 0 {
		layout += "." + "000000"[:digits]
	}
	layout += "Z"
	return func(v []byte) ([]byte, error) {
		micros, err := unixMicros(v)
		if errors.Is(err, errInfinite) {
			if v[0] == 0x7f {
				return []byte("infinity"), nil
			}
			return []byte("-infinity"), nil
		}
		if err != nil {
			return nil, err
		}
		t := time.UnixMicro(micros).UTC()
		if t.Year() < 1 || t.Year() > 9999 {
			return nil, fmt.Errorf("year %d is outside 1 to 9999", t.Year())
		}
		return t.AppendFormat(nil, layout), nil
	}
}
