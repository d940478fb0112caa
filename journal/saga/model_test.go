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
	b := bounds{
		plans:  [][]int{{0, 2}, {1}},
		roles:  []saga.Role{saga.Create, saga.Change},
		rules:  []saga.Rules{after(), after("A"), after()},
		cancel: 99,
	}
	out := explore(&b, stateLimit)
	t.Log("D1", out)
	b = bounds{
		plans:  [][]int{{0}, {0, 1}, {2}},
		roles:  []saga.Role{saga.Create, saga.Change, saga.Change},
		rules:  []saga.Rules{after(), after("A"), after("B")},
		cancel: 99,
		parks: 1,
		answers: onlyYes,
	}
	out = explore(&b, stateLimit)
	t.Log("D2", out)
	b = bounds{
		plans:  [][]int{{0, 3}, {0, 1}, {2}},
		roles:  []saga.Role{saga.Create, saga.Change, saga.Change},
		rules:  []saga.Rules{after(), after("A"), after("B"), after()},
		cancel: 99,
		parks: 1,
		answers: onlyYes,
	}
	out = explore(&b, stateLimit)
	t.Log("D3", out)
}
