// Package probe looks at a running contender from outside: CPU time of processes, wait events and statements of PostgreSQL, round
// trips on its wire, and the shape of the machine.
//
// # CPU time
//
// It is read from /proc/<pid>/stat, in ticks of 10 ms. PostgreSQL is the sum over the postmaster and its children. A child that
// ends is waited for by the postmaster, which adds its time to the postmaster's own "children" counters, so none is lost.
// On systems without /proc all of it is zero.
//
// # Perturbation
//
// Reading CPU time costs nothing worth mentioning. Wait samples and the wire proxy do, so the runs whose figures are compared do
// without them.
package probe
