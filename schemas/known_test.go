package schemas_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
)

// keeping is a client with a file of known schemas.
func keeping(t *testing.T, url, path string) *schemas.Client {
	t.Helper()
	c, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{url}, KnownFile: path, UnknownFor: -1})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Field case F47: a start while the registry is away goes on with what an earlier run was told.
func TestKnownSchemasSurviveRestarts(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	registry.seed(t, 700, listSchema)
	path := filepath.Join(t.TempDir(), "new", "known.json")
	first := keeping(t, registry.url, path)
	_, err := first.Register(t.Context())
	require.NoError(t, err)
	codec := schemas.NewCodec(first)
	payload, err := codec.Encode(t.Context(), orderCreated(t))
	require.NoError(t, err)
	_, err = codec.Decode(t.Context(), wire(700, []byte{0, 0}))
	require.NoError(t, err)

	registry.failWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	second := keeping(t, registry.url, path)
	require.NoError(t, second.Warm(t.Context()))
	codec = schemas.NewCodec(second)
	again, err := codec.Encode(t.Context(), orderCreated(t))
	require.NoError(t, err)
	require.Equal(t, payload, again, "under the same id")
	_, err = schemas.DecodeInto[schemas.OrderCreated](t.Context(), codec, payload)
	require.NoError(t, err)
	got, err := codec.Decode(t.Context(), wire(700, []byte{0, 0}))
	require.NoError(t, err)
	require.JSONEq(t, `{"xs":[],"m":{}}`, string(got.JSON))

	var away *schemas.UnavailableError
	_, err = codec.Decode(t.Context(), wire(699, []byte{0}))
	require.ErrorAs(t, err, &away, "what nobody has asked for is not known")

	t.Run("of another registry", func(t *testing.T) {
		other := newRegistry(t)
		other.failWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		require.ErrorAs(t, keeping(t, other.url, path).Warm(t.Context()), &away)
	})
	t.Run("of another schema", func(t *testing.T) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		changed := filepath.Join(t.TempDir(), "known.json")
		require.NoError(t, os.WriteFile(changed, replaceHashes(text), 0o600))
		require.ErrorAs(t, keeping(t, registry.url, changed).Warm(t.Context()), &away)
	})
	t.Run("broken", func(t *testing.T) {
		broken := filepath.Join(t.TempDir(), "known.json")
		require.NoError(t, os.WriteFile(broken, []byte(`{"registry":`), 0o600))
		require.ErrorAs(t, keeping(t, registry.url, broken).Warm(t.Context()), &away)
		registry.heal()
		require.NoError(t, keeping(t, registry.url, broken).Warm(t.Context()))
		text, err := os.ReadFile(broken)
		require.NoError(t, err)
		require.Contains(t, string(text), "ebb.OrderCreated", "it is replaced")
	})
	t.Run("an answer of the registry counts, whatever the file says", func(t *testing.T) {
		require.NoError(t, os.WriteFile(path, []byte(`{"registry":"`+registry.url+`","subjects":{},"schemas":{"999":{"schema":"\"int\""}}}`), 0o600))
		_, err := schemas.NewCodec(keeping(t, registry.url, path)).Decode(t.Context(), wire(999, []byte{0}))
		var unknown *schemas.UnknownSchemaError
		require.ErrorAs(t, err, &unknown)
	})
	t.Run("a file that cannot be written", func(t *testing.T) {
		require.NoError(t, keeping(t, registry.url, filepath.Join(path, "below a file")).Warm(t.Context()))
	})
}

// replaceHashes makes a file of an older release: its schemas were others.
func replaceHashes(text []byte) []byte {
	out := append([]byte(nil), text...)
	for i := 0; i+10 < len(out); i++ {
		if string(out[i:i+10]) == `"sha256":"` {
			out[i+10] ^= 1
		}
	}
	return out
}
