// Package consumers is the engine behind a destination: it takes its events in from Kafka, claims what is due, makes the calls, and
// records how they ended.
//
// # Model
//
//	Kafka ──poll──▶ ingest ──▶ journal                (package internal/intake: durable first, then the offset)
//	                             │ wake-up, timer, scan
//	                             ▼
//	             dispatcher ── claim ──▶ attempts ──▶ recorder ──▶ journal
//	                 ▲   free places, rate, breaker       │ group commit
//	                 └────────────────────────────────────┘
//
// Retries are rows in the journal, not goroutines: an attempt that is over holds nothing.
//
// # The breaker
//
//	        three results in a row, over different sagas, that are the destination's fault
//	CLOSED ────────────────────────────────────────────────────────────────────────────▶ OPEN
//	   ▲                                                                                   │ one probe at a time,
//	   └── full speed again, one place more per normal answer ◀── RAMPING ◀── it answers ──┘ ever less often
//
// An attempt without any answer neither opens a closed breaker nor counts as a sign of life for an open one. While it is open, attempts
// are probes: they are not charged, and never the step's own fault.
//
// # Invariants
//
//   - G2: intake marks a record only after the journal has it.
//   - G3: no byte leaves before the claim is committed, nor after the part of the lease that leaves room for the whole call.
//   - G4: the request is what the journal stored at the first claim.
//   - G10: on shutdown nothing new is sent, calls get the grace to end, and what is cut off is given back without charge.
//   - G12: no transaction is open during a call.
//
// # Failure behaviour
//
// When the database is away, polls wait, results wait in memory, and leases are not expired until this process has been connected
// for as long as one lasts. When Kafka is away, claims and calls go on.
//
// When the schema registry is away, or refuses our credentials, a record with an unknown schema id holds its partition, and Reading says
// so. A record that cannot be read becomes a dead letter, byte for byte, and reading goes on behind it; one with a schema id that the
// registry does not have does so after some tries. A null value is passed over and counted.
package consumers
