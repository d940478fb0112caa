package relay

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/stretchr/testify/require"
)

// insertHex is a row of relation 16385: binary 01 02, NULL, empty binary.
const insertHex = "000040014e0003" + "62000000020102" + "6e" + "6200000000"

func TestDecodeInsert(t *testing.T) {
	t.Parallel()
	src, err := hex.DecodeString(insertHex)
	require.NoError(t, err)
	relation, row, err := decodeInsert(src, nil)
	require.NoError(t, err)
	require.EqualValues(t, 16385, relation)
	require.Equal(t, []cell{{kind: cellBinary, data: []byte{1, 2}}, {kind: cellNull}, {kind: cellBinary, data: []byte{}}}, row)
	for n := range src {
		_, _, err := decodeInsert(src[:n], nil)
		require.Error(t, err, "cut after %d bytes", n)
	}
	_, _, err = decodeInsert(append(src, 0), nil)
	require.Error(t, err, "bytes after the row")
}

// FuzzDecodeInsert holds the decoder against the client library's wherever both accept a message.
func FuzzDecodeInsert(f *testing.F) {
	src, err := hex.DecodeString(insertHex)
	require.NoError(f, err)
	f.Add(src)
	f.Add([]byte{0, 0, 0, 1, 'N', 0, 1, 't', 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, src []byte) {
		relation, row, err := decodeInsert(bytes.Clone(src), nil)
		if err != nil {
			return
		}
		msg, err := pglogrepl.Parse(append([]byte{insertMessage}, src...))
		require.NoError(t, err)
		insert, ok := msg.(*pglogrepl.InsertMessage)
		require.True(t, ok)
		require.Equal(t, insert.RelationID, relation)
		require.Len(t, row, len(insert.Tuple.Columns))
		for i, c := range insert.Tuple.Columns {
			require.Equal(t, c.DataType, row[i].kind)
			require.True(t, bytes.Equal(c.Data, row[i].data))
		}
	})
}

func FuzzPosition(f *testing.F) {
	f.Add([]byte(`{"format":1,"slot":"s","systemId":"7","timeline":1,"database":"d","lsn":"0/1","at":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := parsePosition(value)
		if err != nil {
			return
		}
		r, err := p.record("t")
		if err != nil {
			return // a year that JSON cannot say
		}
		again, err := parsePosition(r.Value)
		require.NoError(t, err)
		require.Equal(t, p.LSN, again.LSN)
		require.Equal(t, p.System, again.System)
	})
}
