// Package lifecycle runs a process as a group of actors and answers for its health.
//
// The first actor to end stops the others; Group.Run returns when all have ended, with the error of the first. A signal is the end
// of one such actor: an orderly stop. A second signal ends the process at once.
package lifecycle
