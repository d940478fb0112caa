package field

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// TestPausedDestination: an operator stops what is sent to a destination, in all processes at once, and nothing is lost by it (G10).
func TestPausedDestination(t *testing.T) {
	t.Parallel()
	s := start(t, chain(), "")
	out, code := s.run("destination", "pause", "billing", "--reason", "it double-books")
	require.Zero(t, code, out)
	out, code = s.run("destination", "pause", "billing", "--reason", "again")
	require.Equal(t, refused, code, out)
	id := s.create()
	s.until(func() (bool, string) { return s.states(id)["billing do"] == "READY", "billing is not due" })
	s.kill()
	s.restart() // the pause is in the database
	out, code = s.run("destination", "list")
	require.Zero(t, code, out)
	require.Contains(t, out, "billing is paused by")
	require.Contains(t, out, "it double-books")
	other := s.create()
	s.until(func() (bool, string) { return s.states(other)["billing do"] == "READY", "billing is not due" })
	require.Empty(t, s.calls("", sim.Billing, ""))
	out, code = s.run("destination", "resume", "billing", "--reason", "they have rolled back")
	require.Zero(t, code, out)
	s.completed(id, 1)
	s.completed(other, 1)
	s.oracle()
}
