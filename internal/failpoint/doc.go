// Package failpoint stops a process at a named place, so that a test can prove
// what a crash there loses: nothing.
//
// # Model
//
// Code calls Hit with a constant name at the places where a crash is
// interesting, such as just before and just after a commit. In production every
// such call costs one atomic load and does nothing. A test starts the program
// as a child process with the environment variable EBB_FAILPOINTS:
//
//	EBB_FAILPOINTS="producer.create.before_commit=kill,relay.acked=kill@3,outcome.applied=pause"
//
// A list entry is NAME=ACTION or NAME=ACTION@N. Without @N the action happens at
// every hit, with @N only at the N-th hit of that name in this process, counted
// from 1 over all goroutines.
//
//	kill    sends SIGKILL to the own process: no deferred call, no flush, no
//	        exit handler runs. Hit does not return.
//	pause   blocks the calling goroutine until the process gets SIGUSR1; all
//	        other signals do what they always do.
//	error   makes Hit return an *Error.
//
// Places that several destinations or groups pass have a second name with the
// scope behind it, such as consumers.after-reply.billing; see HitIn.
//
// Before it acts, Hit writes "failpoint NAME: ACTION" and a line feed to
// standard error, so that a parent can wait for the line instead of sleeping.
//
// # Failure behaviour
//
// A list that cannot be read ends the process at start with status 2 and a
// message that names the entry: a test whose fault never happens would pass for
// the wrong reason. A name that no code hits is not noticed here; the parent
// notices, because the line above never comes.
package failpoint
