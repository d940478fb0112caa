//go:build unix && !linux

package postgresrun

import "syscall"

// serverAttr has no parent-death signal here: a server whose supervisor was killed is stopped by the next Start.
func serverAttr(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	setCredential(attr, a)
	return attr
}
