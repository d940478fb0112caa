package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/bench/probe"
	"github.com/ebbline/ebb/destination/spec"
)

func TestEveryTenthOrderIsRefusedAtOneDestinationAfterTheOther(t *testing.T) {
	t.Parallel()
	refused := map[string]int{}
	for n := range int64(400) {
		name := customer(n + 1)
		for _, d := range []string{"inventory", "fraudCheck", "shipping", "billing"} {
			if bytes.HasSuffix([]byte(name), []byte("-refuse-"+d)) {
				refused[d]++
			}
		}
	}
	require.Equal(t, map[string]int{"inventory": 10, "fraudCheck": 10, "shipping": 10, "billing": 10}, refused)
}

func TestTheNoteFileIsADestination(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("note.yaml", noteFile)
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Rules().Concurrency, keys)
}

func TestAWindowRelatesCostToWhatWasFinished(t *testing.T) {
	t.Parallel()
	w := window{Seconds: 2}
	w.finish(500, spent{transactions: 1000, cpu: probe.CPU{PostgreSQL: 1, Machine: 3, Processes: map[string]float64{"ebb": 0.5, "api": 0.25, "bench": 0.25}}})
	require.InDelta(t, 2, w.Transactions, 0)
	require.InDelta(t, 250, w.PerSecond, 0)
	require.InDelta(t, 2, w.CPU.PostgreSQL, 0)
	require.InDelta(t, 4, w.CPU.total(), 0)
	require.InDelta(t, 0.5, w.Others, 0)
	var idle window
	idle.Seconds = 1
	idle.finish(0, spent{})
	require.Zero(t, idle.CPU.total())
}

func TestRatiosAreOfMediansAndOfRounds(t *testing.T) {
	t.Parallel()
	c := comparison{Name: "x"}
	for _, v := range [][2]float64{{100, 50}, {300, 100}, {200, 100}} {
		c.Ebb.Windows = append(c.Ebb.Windows, window{PerSecond: v[0]})
		c.Peer.Windows = append(c.Peer.Windows, window{PerSecond: v[1]})
	}
	require.InDelta(t, 2, c.ratio(), 0)
	require.Equal(t, []float64{2, 3, 2}, c.ratios())
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.Contains(t, string(text), `"ratio":2,"ratioOfRounds":[2,3,2]`)
	var out bytes.Buffer
	require.NoError(t, (&report{At: time.Now(), Orders: &c, HalfLoad: &halfLoad{}}).print(&out))
	require.Contains(t, out.String(), "ratio 2.00")
}

func TestFlagsRefuseWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	good := flags{Rounds: 3, Seconds: 8, InFlight: 1000, Clients: 16, Workers: 96}
	require.NoError(t, good.complete())
	quick := good
	quick.Quick = true
	require.NoError(t, quick.complete())
	require.Equal(t, 1, quick.Rounds)
	bad := good
	bad.Only, bad.Rounds = []string{"order", "profile"}, 0
	err := bad.complete()
	require.ErrorContains(t, err, "--only order")
	require.ErrorContains(t, err, "--rounds")
	require.ErrorContains(t, err, "--profile DIR")
	require.True(t, good.wants("orders"))
	require.False(t, good.wants("profile"))
}
