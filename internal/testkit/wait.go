package testkit

import (
	"testing"
	"time"
)

// Eventually asks cond again and again until it is true. After timeout (zero: one minute) it fails the test with the
// last message that cond gave. The timeout is no assertion: choose it so that only a hang reaches it.
func Eventually(t testing.TB, cond func() (bool, string), timeout time.Duration) {
	t.Helper()
	if timeout == 0 {
		timeout = time.Minute
	}
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	pause := time.Millisecond
	for {
		ok, message := cond()
		if ok {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("condition not met within %s: %s", timeout, message)
		case <-time.After(pause):
			pause = min(2*pause, 50*time.Millisecond)
		}
	}
}
