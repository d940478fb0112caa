package call

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTokenLife: a token is not used any more shortly before it ends.
func TestTokenLife(t *testing.T) {
	t.Parallel()
	asked := time.Now()
	for reply, want := range map[string]time.Duration{
		`{"access_token":"x","expires_in":3600}`:                 time.Hour - 30*time.Second,
		`{"access_token":"x","expires_in":"60"}`:                 45 * time.Second,
		`{"access_token":"x"}`:                                   5*time.Minute - 30*time.Second,
		`{"access_token":"x","expires_in":null}`:                 5*time.Minute - 30*time.Second,
		`{"access_token":"x","expires_in":-1}`:                   5*time.Minute - 30*time.Second,
		`{"access_token":"x","expires_in":99999999999999999999}`: 24*time.Hour - 30*time.Second,
	} {
		token, bad := readToken([]byte(reply), asked)
		require.Empty(t, bad, reply)
		require.Equal(t, want, token.expires.Sub(asked), reply)
	}
}

func FuzzReadToken(f *testing.F) {
	f.Add([]byte(`{"access_token":"x","token_type":"Bearer","expires_in":3600}`))
	f.Add([]byte(`{"access_token":"x\n","expires_in":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		token, bad := readToken(body, time.Now())
		require.Equal(t, bad == "", token.value != "")
		require.True(t, token.value == "" || printable(token.value))
	})
}
