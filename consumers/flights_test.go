package consumers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlacesAreSharedWhileBothCausesWantMore(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := newFlights(5, 9)
	require.Equal(t, 5, f.free(now, fromQueue, 9, 0), "who is alone has all")
	require.Equal(t, 5, f.free(now, fromResult, 9, 0))
	f.add(fromQueue, 5)
	require.Zero(t, f.free(now, fromResult, 1, 0))
	f.want(now, fromResult)
	f.add(fromQueue, -1)
	require.Zero(t, f.free(now, fromQueue, 1, 0), "three are the queue's share, and it has four")
	require.Equal(t, 1, f.free(now, fromResult, 2, 0))
	f.add(fromResult, 1)
	f.add(fromQueue, -2)
	require.Equal(t, 1, f.free(now, fromQueue, 9, 0))
	f.want(now, fromQueue)
	require.Equal(t, 1, f.free(now, fromResult, 9, 0), "two are the results' share, and they have one")
	require.Equal(t, 2, f.free(now.Add(hungry), fromResult, 9, 0), "a want is forgotten")
}

func TestTheOnlyPlaceIsTheQueues(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := newFlights(1, 9)
	f.want(now, fromQueue)
	f.want(now, fromResult)
	require.Equal(t, 1, f.free(now, fromQueue, 1, 0))
	require.Zero(t, f.free(now, fromResult, 1, 0))
}

func TestACallThatHasEndedLeavesItsPlace(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := newFlights(2, 1)
	f.add(fromQueue, 2)
	f.end(fromQueue)
	require.Equal(t, 1, f.free(now, fromQueue, 9, 0), "its end is still to be stored")
	f.add(fromQueue, 1)
	f.end(fromQueue)
	require.Zero(t, f.free(now, fromQueue, 9, 0), "too many ends are still to be stored")
	require.Equal(t, 1, f.count())
	f.end(fromQueue)
	for range 3 {
		f.wait(0)
		f.stored()
	}
	f.wait(-1)
	require.Equal(t, 2, f.free(now, fromQueue, 9, 0))
}

func TestClaimsGoAheadOfTheirPlacesByPace(t *testing.T) {
	t.Parallel()
	var p pace
	require.Zero(t, p.within(time.Second, 4, 99), "nothing is known yet")
	p.took(100 * time.Millisecond)
	require.Equal(t, 40, p.within(time.Second, 4, 99))
	require.Equal(t, 9, p.within(time.Second, 4, 9))
	for range 99 {
		p.took(8 * time.Second)
	}
	require.Zero(t, p.within(time.Second, 4, 99), "who is slow gets nothing ahead")
	require.Equal(t, 7, newFlights(2, 9).free(time.Now(), fromQueue, 7, 5))
}
