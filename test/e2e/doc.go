// Package e2e kills the pipeline at random in the middle of its work, in both ways to run it, and lets the outside world say whether
// anything was lost or done twice (G12). Its tests have the build tag e2e: `make e2e`.
//
// The seed of a run is printed; EBB_E2E_SEED=N runs the same orders, refusals, faults and choices of whom to kill again. What the
// machine does between two kills is not repeated.
package e2e
