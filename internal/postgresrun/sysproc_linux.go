package postgresrun

import "syscall"

// serverAttr makes the kernel ask the server to stop if the supervisor itself is killed.
func serverAttr(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	setCredential(attr, a)
	return attr
}
