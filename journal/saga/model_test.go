//go:build !race

package saga_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal/saga"
)

// orders is the world of design: e1 (create: A, and B after A), e2 (change: A).
func orders() bounds {
	return bounds{
		plans: [][]int{{0, 1}, {0}},
		roles: []saga.Role{saga.Create, saga.Change},
		rules: []saga.Rules{after(), after("A")},
	}
}

const stateLimit = 20_000_000

func check(t *testing.T, b bounds) {
	t.Helper()
	out := explore(&b, stateLimit)
	t.Log(out)
	require.Empty(t, out.why)
	require.False(t, out.stopped)
}


func TestTry(t *testing.T) {
	b := orders()
	b.cancel = 99
	check(t, b)
	b.faults = 2
	b.messages = true
	check(t, b)
}
