package seal_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/seal"
)

func keyOf(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

func ring(t testing.TB, keys ...string) seal.Ring {
	t.Helper()
	r, err := seal.Parse(strings.Join(keys, ", "))
	require.NoError(t, err)
	return r
}

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	r := ring(t, keyOf(1))
	text, err := r.Seal([]byte("4111111111111111"), "s:billing:do")
	require.NoError(t, err)
	require.NotContains(t, text, "4111")
	again, err := r.Seal([]byte("4111111111111111"), "s:billing:do")
	require.NoError(t, err)
	require.NotEqual(t, text, again, "nobody sees that two values are the same")

	plain, err := r.Open(text, "s:billing:do")
	require.NoError(t, err)
	require.Equal(t, "4111111111111111", string(plain))

	_, err = r.Open(text, "s:billing:undo")
	require.ErrorIs(t, err, seal.ErrBroken, "sealed for one place, opened at no other")
	for _, broken := range []string{"", "x", text[:len(text)-4] + "AAAA", text[:9], text[:12], strings.ToUpper(text[:9]) + "!"} {
		_, err = r.Open(broken, "s:billing:do")
		require.Error(t, err, broken)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	old := ring(t, keyOf(1))
	text, err := old.Seal([]byte("v"), "p")
	require.NoError(t, err)

	rotated := ring(t, keyOf(2), keyOf(1))
	plain, err := rotated.Open(text, "p")
	require.NoError(t, err)
	require.Equal(t, "v", string(plain))
	fresh, err := rotated.Seal([]byte("v"), "p")
	require.NoError(t, err)

	var missing *seal.KeyError
	_, err = old.Open(fresh, "p")
	require.ErrorAs(t, err, &missing)
	require.Equal(t, fresh[:8], missing.ID)
	require.ErrorContains(t, err, "EBB_SEAL_KEY")
}

func TestParse(t *testing.T) {
	t.Parallel()
	none, err := seal.Parse(" ")
	require.NoError(t, err)
	require.True(t, none.IsZero())
	_, err = none.Seal(nil, "p")
	require.ErrorIs(t, err, seal.ErrNoKey)

	url := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 32))
	require.False(t, ring(t, url).IsZero())
	for _, bad := range []string{"canary", keyOf(1) + ",canary-key", base64.StdEncoding.EncodeToString([]byte("canary"))} {
		_, err = seal.Parse(bad)
		require.ErrorContains(t, err, "is not 32 bytes in base64")
		require.NotContains(t, err.Error(), "canary")
	}
	r := ring(t, keyOf(7))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", r, r, r, &r), "7 7")
}

func FuzzOpen(f *testing.F) {
	r := ring(f, keyOf(1))
	good, err := r.Seal([]byte("plain"), "p")
	require.NoError(f, err)
	f.Add(good)
	f.Add("01234567:AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		plain, err := r.Open(text, "p")
		if err == nil {
			require.Equal(t, "plain", string(plain))
		}
	})
}
