package endpoint

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/journal/saga"
)

func lookupOf(t *testing.T, keys string) *spec.LookupCall {
	t.Helper()
	s, err := spec.Parse("t.yaml", []byte("destination: x\non: E\nbase_url: http://h\nrequest: { url: /a }\nrevert: none\nlookup: { url: /a/b"+keys+" }\n"))
	require.NoError(t, err)
	return s.Lookup
}

func TestWhatALookupSays(t *testing.T) {
	t.Parallel()
	plain := lookupOf(t, "")
	full := lookupOf(t, `, found_when: { path: $.s, op: eq, value: done }, refused_when: { path: $.s, op: eq, value: no },
  not_found_when: { path: $.s, op: eq, value: none }, pending_when: { path: $.s, op: eq, value: soon }`)
	for _, c := range []struct {
		l      *spec.LookupCall
		status int
		body   string
		want   saga.Class
	}{
		{plain, 200, `{}`, saga.ClassSucceeded},
		{plain, 404, ``, saga.ClassNotFound},
		{plain, 410, ``, saga.ClassNotFound},
		{plain, 401, ``, saga.ClassUnknown},
		{plain, 302, ``, saga.ClassUnknown},
		{plain, 500, ``, saga.ClassUnknown},
		{plain, 0, ``, saga.ClassUnknown},
		{full, 200, `{"s":"done"}`, saga.ClassSucceeded},
		{full, 200, `{"s":"no"}`, saga.ClassRefused},
		{full, 200, `{"s":"none"}`, saga.ClassNotFound},
		{full, 200, `{"s":"soon"}`, saga.ClassUnknown},
		{full, 200, `{"s":"what"}`, saga.ClassUnknown},
		{full, 200, `not JSON`, saga.ClassUnknown},
		{full, 404, `{"s":"done"}`, saga.ClassNotFound},
	} {
		got, why := found(c.l, call.Exchange{Status: c.status, Body: []byte(c.body)}, "lookup: no reply")
		require.Equal(t, c.want, got, "%d %s", c.status, c.body)
		require.Equal(t, c.want == saga.ClassSucceeded, why == "")
	}
	got, why := found(plain, call.Exchange{Status: 200, Err: errors.New("cut")}, "lookup: cut")
	require.Equal(t, saga.ClassUnknown, got)
	require.Equal(t, "lookup: cut", why)
}
