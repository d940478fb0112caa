package call_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

func answer(t *testing.T, keys string) spec.Answer {
	t.Helper()
	s, err := spec.Parse("t.yaml", []byte("destination: x\non: E\nbase_url: http://h\nidempotent: true\nrequest: { url: /a }\nrevert: none\n"+keys))
	require.NoError(t, err)
	return s.Routes[0].Call.Answer
}

// TestRules is field case F42: the file decides before the status does.
func TestRules(t *testing.T) {
	t.Parallel()
	rules := answer(t, `
success_when: { path: $.ok, op: eq, value: true }
failure_when: { path: $.error, op: exists }
classify:
  - { status: 409, when: { path: $.code, op: eq, value: in_progress }, as: unknown }
  - { status: 409, when: { path: $.code, op: eq, value: already_done }, as: succeeded }
  - { status: ["418", "520-529"], as: retry }
  - { status: 404, as: misconfigured }
  - { when: { path: $.fatal, op: eq, value: true }, as: refused }
  - { status: 5xx, when: { path: $.stage, op: eq, value: validation }, as: refused }
`)
	for _, c := range []struct {
		status int
		body   string
		want   call.Class
	}{
		{409, `{"code":"in_progress"}`, call.Unknown},
		{409, `{"code":"already_done"}`, call.Succeeded},
		{409, `{"code":"insufficient_stock"}`, call.Refused},
		{409, `no JSON`, call.Refused},
		{418, ``, call.Retry},
		{520, ``, call.Retry},
		{529, ``, call.Retry},
		{530, ``, call.Unknown},
		{404, ``, call.Misconfigured},
		{400, ``, call.Refused},
		{200, `{"ok":true}`, call.Succeeded},
		{200, `{"ok":false}`, call.Refused},
		{200, `{}`, call.Refused},
		{201, `{"ok":true,"error":null}`, call.Refused},
		{200, `{"ok":true,"fatal":true}`, call.Refused},
		{200, `<html>`, call.Unknown},
		{204, ``, call.Unknown},
		{500, `{"stage":"validation"}`, call.Refused},
		{500, `{"stage":"capture"}`, call.Unknown},
		{503, ``, call.Unknown},
		{429, ``, call.Retry},
		{302, ``, call.Misconfigured},
	} {
		end := call.End{Direction: call.Do, Method: "POST", Sent: true, Status: c.status, Complete: true, Answer: rules, Reply: render.ParseReply([]byte(c.body))}
		got := call.Classify(end)
		require.Equal(t, call.Verdict{Class: c.want, Maybe: c.want == call.Unknown}, got, "%d %s", c.status, c.body)

		end.Complete = false
		require.Equal(t, call.Verdict{Class: call.Unknown, Maybe: true}, call.Classify(end), "no rule reads half a reply")
		end.Sent = false
		require.Equal(t, call.NotSent, call.Classify(end).Class)
	}

	retry := call.End{Direction: call.Do, Method: "POST", Sent: true, Status: 418, Complete: true, Answer: rules, MayHaveHappened: true}
	require.Equal(t, call.Verdict{Class: call.Retry, Maybe: true}, call.Classify(retry), "what may have happened before stays open")

	only := answer(t, "failure_when: { path: $.error, op: exists }")
	end := call.End{Direction: call.Do, Method: "POST", Sent: true, Status: 200, Complete: true, Answer: only, Reply: render.ParseReply([]byte(`{}`))}
	require.Equal(t, call.Succeeded, call.Classify(end).Class)

	gone := call.End{Direction: call.Undo, Method: "DELETE", Sent: true, Status: 404, Complete: true}
	require.Equal(t, call.Succeeded, call.Classify(gone).Class)
	gone.Answer = answer(t, "classify: [ { status: 404, as: refused } ]")
	require.Equal(t, call.Refused, call.Classify(gone).Class, "a rule of the undo comes before the default of a DELETE")
}

func TestPendingRules(t *testing.T) {
	t.Parallel()
	rules := answer(t, `
lookup: { url: "/a/{idempotencyKey}" }
pending_when: { path: $.status, op: eq, value: accepted }
classify: [ { status: 409, when: { path: $.code, op: eq, value: in_progress }, as: pending } ]
`)
	for _, c := range []struct {
		status int
		body   string
		want   call.Class
	}{
		{200, `{"status":"accepted"}`, call.Pending},
		{200, `{"status":"captured"}`, call.Succeeded},
		{202, `{}`, call.Pending},
		{409, `{"code":"in_progress"}`, call.Pending},
		{409, `{}`, call.Refused},
		{200, `<html>`, call.Unknown},
	} {
		got := call.Classify(call.End{
			Direction: call.Do, Method: "POST", Sent: true, Status: c.status, Complete: true, Answer: rules, Reply: render.ParseReply([]byte(c.body)),
		})
		require.Equal(t, c.want, got.Class, "%d %s", c.status, c.body)
		require.Equal(t, c.want == call.Pending || c.want == call.Unknown, got.Maybe)
	}
}
