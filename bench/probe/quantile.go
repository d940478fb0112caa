package probe

import "slices"

// Quantile gives the value below which the share q of the values lies, 0 for none. It sorts the values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// Median is the middle value; of an even number, the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// Spread is the half and the 99th of 100 of a set of durations, in milliseconds.
type Spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	N   int     `json:"n"`
}

// SpreadOf sorts the values.
func SpreadOf(values []float64) Spread {
	return Spread{P50: Quantile(values, 0.5), P99: Quantile(values, 0.99), N: len(values)}
}
