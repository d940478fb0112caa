// Package harness runs the real binary as child processes of a test, with simulated destinations in the test's own process, so that
// a test can kill, freeze and restart any part of the pipeline and then ask the outside world what happened.
//
// # Model
//
//	test process                               child processes (SIGKILL, SIGSTOP, failpoints)
//	┌────────────────────────────┐             ┌───────────────────────────────────────────┐
//	│ Sim: destinations, ledgers │◀── HTTP ────│ ebb up --no-sim            (Start)         │
//	│ Orders: API client         │─── HTTP ───▶│   or ebb infra + one role each             │
//	│ Oracle, DB: SQL, Kafka     │─── SQL ────▶│                    (StartInfra, StartRole) │
//	└────────────────────────────┘             └───────────────────────────────────────────┘
//	                                             PostgreSQL: testkit's (a database of the test's own),
//	                                             or embedded in the child (Options.Embedded)
//
// A [Process] is one program that may run many times: Kill, Stop and Restart keep its data folder, flags and environment. A
// failpoint given for one run does not hold for the next.
//
// # The oracle
//
// [Oracle] judges a pipeline that has come to rest by the simulator's ledger, which nothing else writes: I1 money, stock and
// shipments are never doubled and never undone before they were done; I2 every order has one end and the ledger agrees with it;
// I3 no offset is ahead of what is durable. [Rerun] reads every topic again and is I5; [Canary] looks for a planted credential and
// is I4. [StartSim] checks I1 by itself at the end of every test.
//
// # Rules
//
// Nothing sleeps: everything waits for a condition (testkit.Eventually), and no wait is an assertion on time. What a child wrote is
// shown when the test fails; EBB_TEST_LOGS=DIR keeps all of it in files. EBB_TEST_BINARY=FILE takes a binary that was built before.
package harness
