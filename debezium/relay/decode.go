package relay

import (
	"encoding/binary"
	"errors"
)

// Inserted rows are decoded here and not by the client library, which copies a value byte by byte and trusts the lengths
// it reads. All other messages are rare and go through the library.

// cell is one column of a row: its kind as the protocol has it, and its bytes, which belong to the row.
type cell struct {
	kind byte
	data []byte
}

// Kinds of a cell.
const (
	cellNull   = 'n'
	cellToast  = 'u' // unchanged and not sent; never in an insert
	cellText   = 't'
	cellBinary = 'b'
)

var errShortInsert = errors.New("an insert message ends before its row does")

// insertMessage is the type byte of an inserted row.
const insertMessage = 'I'

// decodeInsert reads an insert message without its type byte. The cells are appended to row and point into src.
func decodeInsert(src []byte, row []cell) (relation uint32, _ []cell, err error) {
	// relation id, the letter N, number of columns
	if len(src) < 7 || src[4] != 'N' {
		return 0, nil, errShortInsert
	}
	relation = binary.BigEndian.Uint32(src)
	columns := int(binary.BigEndian.Uint16(src[5:]))
	src = src[7:]
	for range columns {
		if len(src) < 1 {
			return 0, nil, errShortInsert
		}
		c := cell{kind: src[0]}
		src = src[1:]
		if c.kind == cellBinary || c.kind == cellText {
			if len(src) < 4 {
				return 0, nil, errShortInsert
			}
			n := binary.BigEndian.Uint32(src)
			src = src[4:]
			if uint64(n) > uint64(len(src)) {
				return 0, nil, errShortInsert
			}
			// The capacity ends with the value, so that nobody appends into his neighbour.
			c.data = src[:n:n]
			src = src[n:]
		}
		row = append(row, c)
	}
	if len(src) != 0 {
		return 0, nil, errors.New("an insert message goes on after its row")
	}
	return relation, row, nil
}
