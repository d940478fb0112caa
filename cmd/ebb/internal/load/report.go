package load

import (
	"maps"
	"slices"
	"time"
)

// Ends beside the statuses of orders.
const (
	Attention = "ATTENTION" // waits for an operator
	Open      = "OPEN"      // not at its end when the load's report was made
)

// Report is how a load went.
type Report struct {
	Sent     int `json:"sent"`
	Accepted int `json:"accepted"`
	// Failed counts what was not taken, by reason.
	Failed map[string]int `json:"failed"`
	// Ends counts accepted orders by how they ended: a status, ATTENTION or OPEN.
	Ends map[string]int `json:"ends"`
	// Took is from the first order's time to the last answer, in microseconds; PerSecond the rate of accepted orders in thousandths.
	Took      int64 `json:"tookMicros"`
	PerSecond int64 `json:"acceptedPerSecondMilli"`
	// Accept is from when an order was due to its answer; End from an order's creation to its end, by the service's clock, of orders
	// that were not to be cancelled.
	Accept Spread `json:"accept"`
	End    Spread `json:"end"`
}

// Good tells whether every order was taken and came to an end.
func (r Report) Good() bool { return len(r.Failed) == 0 && r.Ends[Open] == 0 }

// Spread is quantiles of a time in microseconds, by nearest rank; all are 0 without a measurement.
type Spread struct {
	Count int   `json:"count"`
	P50   int64 `json:"p50Micros"`
	P99   int64 `json:"p99Micros"`
	Max   int64 `json:"maxMicros"`
}

func spreadOf(times []time.Duration) Spread {
	if len(times) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := func(percent int) int64 {
		n := (len(sorted)*percent + 99) / 100
		return sorted[max(n, 1)-1].Microseconds()
	}
	return Spread{len(sorted), rank(50), rank(99), rank(100)}
}

// report is made when nothing is sent or watched any more.
func (r *run) report(sent int, took time.Duration) Report {
	out := Report{
		Sent: sent, Accepted: len(r.accept), Failed: r.failed, Ends: maps.Clone(r.watch.ends),
		Took: took.Microseconds(), Accept: spreadOf(r.accept), End: spreadOf(r.watch.took),
	}
	if open := len(r.watch.open); open > 0 {
		out.Ends[Open] = open
	}
	if out.Took > 0 {
		out.PerSecond = int64(out.Accepted) * 1_000_000_000 / out.Took
	}
	return out
}
