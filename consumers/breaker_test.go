package consumers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

func id(n byte) saga.ID { return saga.ID{n} }

func TestBreakerOpensAfterFaultsOfDifferentSagasInARow(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBreaker(3, time.Second, 4*time.Second, 8)
	say := func(n byte, s sign) BreakerState {
		_, after := b.result(now, id(n), s)
		return after
	}
	require.Equal(t, BreakerClosed, say(1, signFault))
	require.Equal(t, BreakerClosed, say(1, signFault), "the same saga counts once")
	require.Equal(t, BreakerClosed, say(2, signFault))
	require.Equal(t, BreakerClosed, say(3, signAnswer), "an answer begins the row anew")
	require.Equal(t, BreakerClosed, say(1, signFault))
	require.Equal(t, BreakerClosed, say(2, signSilence), "a lost call is no sign of either")
	require.Equal(t, BreakerClosed, say(2, signFault))
	require.Equal(t, BreakerOpen, say(3, signFault))
}

func TestBreakerProbesEverLessOftenAndRampsUp(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBreaker(1, time.Second, 4*time.Second, 3)
	_, after := b.result(now, id(1), signFault)
	require.Equal(t, BreakerOpen, after)
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		n, left := b.allow(now, 0)
		require.Zero(t, n)
		require.Equal(t, wait, left)
		now = now.Add(wait)
		n, _ = b.allow(now, 0)
		require.Equal(t, 1, n)
		n, _ = b.allow(now, 1)
		require.Zero(t, n, "one probe at a time")
		_, after = b.result(now, id(2), signSilence)
		require.Equal(t, BreakerOpen, after, "silence is no sign of life")
	}
	now = now.Add(4 * time.Second)
	_, after = b.result(now, id(1), signAnswer)
	require.Equal(t, BreakerRamping, after)
	n, _ := b.allow(now, 0)
	require.Equal(t, 1, n)
	_, after = b.result(now, id(2), signAnswer)
	require.Equal(t, BreakerRamping, after)
	n, _ = b.allow(now, 1)
	require.Equal(t, 1, n, "one place more per answer")

	_, after = b.result(now, id(3), signFault)
	require.Equal(t, BreakerOpen, after, "a fault while ramping opens it again")
	_, wait := b.allow(now, 0)
	require.Equal(t, time.Second, wait)

	for range 3 {
		before, next := b.result(now, id(4), signAnswer)
		require.NotEqual(t, BreakerClosed, before)
		after = next
	}
	require.Equal(t, BreakerClosed, after)
	require.True(t, b.closed())
	n, _ = b.allow(now, 9)
	require.Greater(t, n, 9, "a closed breaker holds nothing back")
}

func TestSignOfAnEnd(t *testing.T) {
	t.Parallel()
	for want, ends := range map[sign][]Ended{
		signAnswer: {
			{Class: saga.ClassSucceeded}, {Class: saga.ClassRefused}, {Class: saga.ClassRetry},
			{Class: saga.ClassUnknown, Exchange: journal.Exchange{Status: 408}},
		},
		signFault:   {{Class: saga.ClassMisconfigured, Outage: true}, {Class: saga.ClassNotSent, Outage: true}},
		signSilence: {{Class: saga.ClassUnknown}, {Class: saga.ClassParked}},
	} {
		for _, e := range ends {
			require.Equal(t, want, signOf(e), "%+v", e)
		}
	}
}

// A fault is the step's own only if another saga got an answer after it.
func TestHealthCountsAnswersAfterTheFirstFault(t *testing.T) {
	t.Parallel()
	at := time.Now()
	tick := func() time.Time {
		at = at.Add(time.Millisecond)
		return at
	}
	h := newHealth()
	a, b := stepID{id(1), saga.Do}, stepID{id(2), saga.Do}
	h.answered(b, tick())
	require.False(t, h.faulted(a, tick()), "the answer was before the fault")
	require.False(t, h.faulted(a, tick()))
	h.answered(stepID{id(1), saga.Undo}, tick())
	require.False(t, h.faulted(a, tick()), "an answer to the same saga says nothing")
	h.answered(b, tick())
	require.True(t, h.faulted(a, tick()))
	h.answered(stepID{id(1), saga.Undo}, tick())
	require.True(t, h.faulted(a, tick()), "the newest answer was to the same saga, the one before was not")
	h.answered(a, tick())
	require.False(t, h.faulted(a, tick()), "an answer ends its faults")
}

func TestHealthForgetsRatherThanGrows(t *testing.T) {
	t.Parallel()
	h := newHealth()
	now := time.Now()
	for n := range 3 * maxFaults {
		h.faulted(stepID{saga.ID{byte(n), byte(n >> 8), byte(n >> 16)}, saga.Do}, now)
	}
	require.LessOrEqual(t, len(h.faults), maxFaults)
}
