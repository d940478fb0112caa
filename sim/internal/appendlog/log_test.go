package appendlog

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func collect(into *[]string) func(Span, []byte) error {
	return func(_ Span, p []byte) error {
		*into = append(*into, string(p))
		return nil
	}
}

func open(t *testing.T, path string) (*Log, []string) {
	t.Helper()
	var got []string
	l, err := Open(path, true, collect(&got))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, got
}

func write(t *testing.T, path string, records ...string) {
	t.Helper()
	l, err := Open(path, true, func(Span, []byte) error { return nil })
	require.NoError(t, err)
	for _, r := range records {
		span, err := l.Append([]byte(r))
		require.NoError(t, err)
		require.NoError(t, l.Sync(span))
	}
	require.NoError(t, l.Close())
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "log")
	long := string(make([]byte, 1<<19))
	write(t, path, "one", "", long, "two")

	l, got := open(t, path)
	require.Equal(t, []string{"one", "", long, "two"}, got)
	require.Zero(t, l.Cut())

	span, err := l.Append([]byte("three"))
	require.NoError(t, err)
	payload, err := l.Read(span)
	require.NoError(t, err)
	require.Equal(t, "three", string(payload))

	_, err = l.Append([]byte("a\nb"))
	require.Error(t, err)
}

func TestTornTailIsCutAtEveryByte(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	write(t, path, "first record", "second record")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	first := len("first record") + overhead

	for n := first; n < len(whole); n++ {
		torn := filepath.Join(dir, fmt.Sprintf("torn-%d", n))
		require.NoError(t, os.WriteFile(torn, whole[:n], 0o600))
		l, got := open(t, torn)
		require.Equal(t, []string{"first record"}, got, "cut at %d", n)
		require.EqualValues(t, n-first, l.Cut())

		span, err := l.Append([]byte("after"))
		require.NoError(t, err)
		require.NoError(t, l.Sync(span))
		require.NoError(t, l.Close())
		_, got = open(t, torn)
		require.Equal(t, []string{"first record", "after"}, got)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "one", "two", "three")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len("one")+overhead+sumDigits+1] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o600))

	_, err = Open(path, true, func(Span, []byte) error { return nil })
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.EqualValues(t, len("one")+overhead, corrupt.Offset)
}

func TestLockedByAnotherOpener(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	open(t, path)
	_, err := Open(path, true, func(Span, []byte) error { return nil })
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
}

func TestConcurrentAppendsKeepEveryRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	l, err := Open(path, true, func(Span, []byte) error { return nil })
	require.NoError(t, err)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 20 {
				span, err := l.Append(fmt.Appendf(nil, "%d/%d", w, i))
				if err == nil {
					err = l.Sync(span)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, l.Close())
	_, got := open(t, path)
	require.Len(t, got, 320)
	require.Len(t, unique(got), 320)
}

func unique(in []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range in {
		out[s] = true
	}
	return out
}

func TestResetAndClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	l, err := Open(path, true, func(Span, []byte) error { return nil })
	require.NoError(t, err)
	_, err = l.Append([]byte("gone"))
	require.NoError(t, err)
	require.NoError(t, l.Reset())
	require.Zero(t, l.Size())
	span, err := l.Append([]byte("kept"))
	require.NoError(t, err)
	require.Zero(t, span.Off)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Append([]byte("late"))
	require.ErrorIs(t, err, ErrClosed)
	_, got := open(t, path)
	require.Equal(t, []string{"kept"}, got)
}

func TestWriteFailureIsSticky(t *testing.T) {
	t.Parallel()
	l, err := Open(filepath.Join(t.TempDir(), "log"), true, func(Span, []byte) error { return nil })
	require.NoError(t, err)
	require.NoError(t, l.f.Close())
	_, err = l.Append([]byte("x"))
	require.Error(t, err)
	require.Error(t, l.Err())
	require.Error(t, l.Sync(Span{Off: 0, Len: 1}))
}

func FuzzScan(f *testing.F) {
	f.Add(appendLine(nil, []byte("hello")))
	f.Add([]byte("00000000 x\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		n := 0
		l, err := Open(path, false, func(Span, []byte) error { n++; return nil })
		if err != nil {
			return
		}
		require.NoError(t, l.Close())
		again := 0
		l, err = Open(path, false, func(Span, []byte) error { again++; return nil })
		require.NoError(t, err)
		require.Equal(t, n, again)
		require.Zero(t, l.Cut())
		require.NoError(t, l.Close())
	})
}
