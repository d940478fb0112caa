package appendlog

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// scan reads all lines of r and returns where the good ones end and how long
// the input is.
func scan(r io.Reader, path string, each func(Span, []byte) error) (good, total int64, err error) {
	br := bufio.NewReaderSize(r, 1<<18)
	var long []byte
	torn := false
	for {
		line, more, err := readLine(br, long)
		long = more
		if len(line) > 0 {
			payload, ok := checkLine(line)
			switch {
			case !ok:
				torn = true
			case torn:
				return 0, 0, &CorruptError{Path: path, Offset: good}
			default:
				if err := each(Span{Off: good, Len: int32(len(line))}, payload); err != nil {
					return 0, 0, fmt.Errorf("appendlog: record at byte %d of %s: %w", good, path, err)
				}
				good += int64(len(line))
			}
			total += int64(len(line))
		}
		if errors.Is(err, io.EOF) {
			return good, total, nil
		}
		if err != nil {
			return 0, 0, fmt.Errorf("appendlog: read %s: %w", path, err)
		}
	}
}

// readLine returns the next line with its line feed. It uses scratch for lines
// longer than the reader's buffer and returns it for the next call.
func readLine(br *bufio.Reader, scratch []byte) (line, grown []byte, err error) {
	line, err = br.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, scratch, err
	}
	scratch = append(scratch[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = br.ReadSlice('\n')
		scratch = append(scratch, line...)
	}
	return scratch, scratch, err
}

func checkLine(line []byte) (payload []byte, ok bool) {
	if len(line) < overhead || line[len(line)-1] != '\n' || line[sumDigits] != ' ' {
		return nil, false
	}
	var sum [4]byte
	if _, err := hex.Decode(sum[:], line[:sumDigits]); err != nil {
		return nil, false
	}
	payload = line[sumDigits+1 : len(line)-1]
	want := uint32(sum[0])<<24 | uint32(sum[1])<<16 | uint32(sum[2])<<8 | uint32(sum[3])
	return payload, crc32.Checksum(payload, castagnoli) == want
}
