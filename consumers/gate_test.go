package consumers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func isIn(in chan struct{}) bool {
	select {
	case <-in:
		return true
	default:
		return false
	}
}

func TestGateLetsInByTurn(t *testing.T) {
	t.Parallel()
	g := newGate(1)
	a, b, c, d := g.enter(), g.enter(), g.enter(), g.enter()
	require.True(t, isIn(a))
	require.False(t, isIn(b))
	require.True(t, g.giveUp(b))
	require.False(t, g.giveUp(a), "it is in and has to leave")
	g.leave()
	require.True(t, isIn(c))
	require.False(t, isIn(b))
	g.resize(2)
	require.True(t, isIn(d))
	e := g.enter()
	g.resize(0)
	g.leave()
	g.leave()
	require.False(t, isIn(e), "the limit is 0")
	g.resize(1)
	require.True(t, isIn(e))
}
