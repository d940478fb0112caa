package appendlog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
)

const (
	sumDigits = 8
	overhead  = sumDigits + 2 // checksum, space, line feed
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrClosed is returned by every method after Close.
var ErrClosed = errors.New("appendlog: closed")

// CorruptError reports a damaged record with good records behind it.
type CorruptError struct {
	Path   string
	Offset int64 // of the damaged line, in bytes
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("appendlog: %s is damaged at byte %d and has good records behind it; "+
		"it was edited or the disk lost data: move the file away to begin a new one", e.Path, e.Offset)
}

// LockedError reports a file that another process has open.
type LockedError struct{ Path string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("appendlog: %s is in use by another process; stop it or choose another path", e.Path)
}

// Span is the place of one record in the file, in bytes.
type Span struct {
	Off int64
	Len int32 // of the whole line
}

// IsZero reports whether the span names no record.
func (s Span) IsZero() bool { return s.Len == 0 }

func (s Span) end() int64 { return s.Off + int64(s.Len) }

// Log is an open file. It is safe for concurrent use.
type Log struct {
	path  string
	fsync bool
	cut   int64

	mu   sync.Mutex // guards f's end, size, err, buf
	f    *os.File
	size int64
	err  error
	buf  []byte

	syncMu sync.Mutex // held during an fsync; guards synced
	synced int64
}

// Open opens or creates the file at path, cuts off a torn last line and calls
// each for every record in order; the payload is only valid during the call.
// With fsync false Sync does nothing and only kills are survived, not power cuts.
func Open(path string, fsync bool, each func(Span, []byte) error) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("appendlog: make folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("appendlog: open: %w", err)
	}
	l := &Log{path: path, fsync: fsync, f: f}
	if err := l.load(each); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

func (l *Log) load(each func(Span, []byte) error) error {
	if err := lock(l.f); err != nil {
		return &LockedError{Path: l.path}
	}
	good, total, err := scan(l.f, l.path, each)
	if err != nil {
		return err
	}
	l.size, l.cut = good, total-good
	if l.cut > 0 {
		if err := l.f.Truncate(good); err != nil {
			return fmt.Errorf("appendlog: cut torn line: %w", err)
		}
	}
	if _, err := l.f.Seek(good, 0); err != nil {
		return fmt.Errorf("appendlog: seek: %w", err)
	}
	if !l.fsync {
		return nil
	}
	// What a killed process wrote but never synced is about to be served as
	// durable, and a new file must be found after a power cut.
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("appendlog: sync: %w", err)
	}
	l.synced = good
	return syncDir(filepath.Dir(l.path))
}

// Cut returns how many bytes of a torn last line Open removed.
func (l *Log) Cut() int64 { return l.cut }

// Append writes one record at the end of the file. It does not wait for the disk.
func (l *Log) Append(payload []byte) (Span, error) {
	if bytes.IndexByte(payload, '\n') >= 0 {
		return Span{}, errors.New("appendlog: payload holds a line feed")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return Span{}, l.err
	}
	l.buf = appendLine(l.buf[:0], payload)
	if _, err := l.f.Write(l.buf); err != nil {
		// Best effort: leave no half line. The log is finished either way (A4).
		_ = l.f.Truncate(l.size)
		l.err = fmt.Errorf("appendlog: write %s: %w", l.path, err)
		return Span{}, l.err
	}
	span := Span{Off: l.size, Len: int32(len(l.buf))}
	l.size += int64(len(l.buf))
	return span, nil
}

// Sync returns when the record at span is on disk.
func (l *Log) Sync(span Span) error {
	if !l.fsync {
		return l.Err()
	}
	// Callers queue here. The first one through pays for an fsync that covers
	// all lines written so far; those behind it mostly find themselves covered.
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if l.synced >= span.end() {
		return nil
	}
	l.mu.Lock()
	target, err := l.size, l.err
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return l.fail(fmt.Errorf("appendlog: sync %s: %w", l.path, err))
	}
	l.synced = target
	return nil
}

// Read returns the payload of the record at span.
func (l *Log) Read(span Span) ([]byte, error) {
	line := make([]byte, span.Len)
	if _, err := l.f.ReadAt(line, span.Off); err != nil {
		return nil, fmt.Errorf("appendlog: read %s at %d: %w", l.path, span.Off, err)
	}
	payload, ok := checkLine(line)
	if !ok {
		return nil, &CorruptError{Path: l.path, Offset: span.Off}
	}
	return payload, nil
}

// Reset removes every record. No other method may run at the same time.
func (l *Log) Reset() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if err := l.f.Truncate(0); err != nil {
		return fmt.Errorf("appendlog: reset: %w", err)
	}
	if _, err := l.f.Seek(0, 0); err != nil {
		l.err = fmt.Errorf("appendlog: reset: %w", err)
		return l.err
	}
	l.size, l.synced = 0, 0
	return nil
}

// Err returns why the log accepts nothing any more, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Size returns the length of the file in bytes.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// Close syncs and closes the file. A second Close does nothing.
func (l *Log) Close() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.err, ErrClosed) {
		return nil
	}
	l.err = ErrClosed
	var err error
	if l.fsync {
		err = l.f.Sync()
	}
	return errors.Join(err, l.f.Close())
}

func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	return l.err
}

func appendLine(dst, payload []byte) []byte {
	var sum [4]byte
	crc := crc32.Checksum(payload, castagnoli)
	sum[0], sum[1], sum[2], sum[3] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
	dst = hex.AppendEncode(dst, sum[:])
	dst = append(dst, ' ')
	dst = append(dst, payload...)
	return append(dst, '\n')
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("appendlog: open folder: %w", err)
	}
	// Some file systems cannot sync a folder; then there is nothing more to do.
	_ = d.Sync()
	return d.Close()
}
