package call_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
)

// statuses is the table of the design, every row of it, for a forward POST.
var statuses = map[call.Class][]int{
	call.Succeeded:     {200, 201, 202, 204, 206, 299},
	call.Refused:       {400, 402, 404, 409, 410, 422},
	call.Retry:         {423, 425, 429},
	call.Unknown:       {100, 101, 408, 499, 500, 502, 503, 504, 505, 507, 520, 599, 600, 999},
	call.Misconfigured: {300, 301, 302, 303, 304, 307, 308, 401, 403, 405, 406, 407, 411, 412, 413, 414, 415, 418, 421, 426, 428, 431, 451, 501},
}

func TestClassifyStatus(t *testing.T) {
	t.Parallel()
	for class, list := range statuses {
		for _, status := range list {
			for _, direction := range []call.Direction{call.Do, call.Undo} {
				end := call.End{Direction: direction, Method: "POST", Sent: true, Status: status, Complete: true}
				got := call.Classify(end)
				require.Equal(t, call.Verdict{Class: class, Maybe: class == call.Unknown}, got, "%s %d", direction, status)

				end.Complete = false
				require.Equal(t, call.Verdict{Class: call.Unknown, Maybe: true}, call.Classify(end), "a reply that is cut says nothing: %d", status)
			}
		}
	}
}

func TestClassifyCircumstances(t *testing.T) {
	t.Parallel()
	reply := func(direction call.Direction, method string, status int) call.End {
		return call.End{Direction: direction, Method: method, Sent: true, Status: status, Complete: true}
	}
	with := func(end call.End, change func(*call.End)) call.End { change(&end); return end }
	maybe := func(e *call.End) { e.MayHaveHappened = true }
	wait := func(e *call.End) { e.RetryAfter = true }
	cases := []struct {
		name string
		end  call.End
		want call.Verdict
	}{
		{"nothing sent", call.End{}, call.Verdict{Class: call.NotSent}},
		{"nothing sent, set-up", call.End{Setup: true}, call.Verdict{Class: call.Misconfigured}},
		{"sent, no reply", call.End{Sent: true}, call.Verdict{Class: call.Unknown, Maybe: true}},
		{"sent, no reply, set-up", call.End{Sent: true, Setup: true}, call.Verdict{Class: call.Unknown, Maybe: true}},
		{"404 on DELETE undo", reply(call.Undo, "DELETE", 404), call.Verdict{Class: call.Succeeded}},
		{"410 on DELETE undo", reply(call.Undo, "DELETE", 410), call.Verdict{Class: call.Succeeded}},
		{"409 on DELETE undo", reply(call.Undo, "DELETE", 409), call.Verdict{Class: call.Refused}},
		{"404 on POST undo", reply(call.Undo, "POST", 404), call.Verdict{Class: call.Refused}},
		{"404 on DELETE do", reply(call.Do, "DELETE", 404), call.Verdict{Class: call.Refused}},
		{"409 after maybe", with(reply(call.Do, "POST", 409), maybe), call.Verdict{Class: call.Retry, Maybe: true}},
		{"422 after maybe", with(reply(call.Do, "POST", 422), maybe), call.Verdict{Class: call.Refused}},
		{"503 with a wait", with(reply(call.Do, "POST", 503), wait), call.Verdict{Class: call.Retry}},
		{"500 with a wait", with(reply(call.Do, "POST", 500), wait), call.Verdict{Class: call.Unknown, Maybe: true}},
		{"429 with a wait", with(reply(call.Do, "POST", 429), wait), call.Verdict{Class: call.Retry}},
		{"202 is done where nobody can be asked", reply(call.Do, "POST", 202), call.Verdict{Class: call.Succeeded}},
		{"202 is pending where it can", with(reply(call.Do, "POST", 202), func(e *call.End) { e.Answer.Polled = true }),
			call.Verdict{Class: call.Pending, Maybe: true}},
		{"200 is done", with(reply(call.Do, "POST", 200), func(e *call.End) { e.Answer.Polled = true }), call.Verdict{Class: call.Succeeded}},
		{"200 after maybe", with(reply(call.Do, "POST", 200), maybe), call.Verdict{Class: call.Succeeded}},
	}
	for _, c := range cases {
		require.Equal(t, c.want, call.Classify(c.end), c.name)
	}
}

// TestClassifyTotal checks that every status has a class and that only an
// open outcome is a maybe.
func TestClassifyTotal(t *testing.T) {
	t.Parallel()
	for status := range 1000 {
		for bits := range 16 {
			end := call.End{
				Direction: []call.Direction{call.Do, call.Undo}[bits&1], Method: []string{"POST", "DELETE"}[bits>>1&1],
				Sent: true, Status: status, Complete: true, RetryAfter: bits>>2&1 == 1, MayHaveHappened: bits>>3&1 == 1,
			}
			got := call.Classify(end)
			require.NotEmpty(t, got.Class)
			if got.Class != call.Retry {
				require.Equal(t, got.Class == call.Unknown, got.Maybe, fmt.Sprint(end))
			}
		}
	}
}
