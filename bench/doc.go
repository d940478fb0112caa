// Command bench measures Ebb and plain loops side by side on one machine and prints one report.
//
// # Model
//
//	            ┌────────── alternating rounds, a fresh database each ──────────┐
//	bench ──▶ Ebb | peer | Ebb | peer | …      warm-up, then a window of some seconds
//	  │                        │  │
//	  │  orders, records       │  └──▶ one PostgreSQL server, fsync on, the same settings for all
//	  └── clients ─────────────┘
//	                           └─────▶ one API server in a process of its own, 5 ms, HTTP over loopback
//
// What a contender has finished in the window is counted afterwards in its own tables, by the time of the database; CPU time is read
// at both ends of the window. The speed of a machine drifts, so that the ratios of medians are the result, not the absolute figures.
//
// # Invariants
//
//   - Nothing is simulated away: commits are synced, calls go over sockets, every call has its audit row.
//   - Each run is checked: calls that the API saw against audit rows, keys that were worked twice, sagas that did not end, effects
//     that were not undone. A run that does not agree with its own tables ends the benchmark with an error.
//   - No figure makes the benchmark fail.
package main
