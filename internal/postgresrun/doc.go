// Package postgresrun runs a PostgreSQL server as a part of this program, for embedded use and for tests.
//
// # Model
//
//	our process ──owner.lock── data folder ──┬── data/        PGDATA, made by initdb
//	     │ pipe (lifeline)                   ├── port         the port, kept over restarts
//	     ▼                                   ├── password     of the role "ebb", mode 0600
//	supervisor (this binary again) ──child──▶├── socket/      Unix socket, where the path is short enough
//	                                         └── server.log   what the server wrote to stderr
//
// The supervisor is this executable started once more with a private environment variable; [MaybeSupervise], called
// first thing in main, recognises that. It holds the reading end of a pipe whose writing end only our process has, so
// that the kernel closes it however our process ends, kill -9 included. End of file means: shut the server down, fast
// first (SIGINT), then immediate (SIGQUIT), then SIGKILL.
//
//	absent ─initdb─▶ stopped ─Start─▶ starting ─ready─▶ running ─Stop or death of the owner─▶ stopping ─▶ stopped
//
// # Invariants
//
//   - One owner: a lock on owner.lock, released by the kernel, says who runs the folder. A second Start fails with
//     [InUseError] at once. A server without a living owner is an orphan on its way down: Start waits for it.
//   - A folder half made by an interrupted initdb is never used: initdb runs beside it and is renamed into place.
//   - The server listens on 127.0.0.1 and its socket folder only, and every connection needs the generated password
//     (SCRAM). Trust was not taken: any local user would be a superuser of the database and, by COPY … PROGRAM, of
//     the account that runs it.
//   - wal_level=logical stands in postgresql.conf, because a server that has a logical slot refuses to start without.
//   - synchronous_commit is always on. A commit that was reported survives the death of any process.
//
// # Durability
//
// With Config.Sync false (the default), fsync is off: commits are in the operating system's memory, which outlives
// kill -9 of the server and of us but not a power cut or a kernel crash. full_page_writes stays on even then: SIGKILL
// can end a write between two memory pages and tear a PostgreSQL page. Config.Sync true makes commits survive a power cut.
//
// # Users
//
// PostgreSQL refuses to run as root. Started as root, initdb and the server run as the user "postgres", or as "nobody"
// where there is none. If that user cannot enter the parents of the data folder (a clone below /root, say), the files
// are kept in /var/lib/ebb/<hash of the path> instead; Server.DataDir says where. Started as anyone else, the server
// runs as that user.
//
// # Failure behaviour
//
// A server that ends by itself closes Server.Done, and Server.Err holds the end of its log. It is not restarted here:
// what depends on it has to decide.
package postgresrun
