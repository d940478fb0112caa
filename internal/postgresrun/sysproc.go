//go:build unix

package postgresrun

import "syscall"

// setCredential drops root's identity and all its supplementary groups.
func setCredential(attr *syscall.SysProcAttr, a account) {
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

// detached puts the supervisor into a session of its own, so that Ctrl-C in a terminal reaches our process only and
// the order of the shutdown stays ours.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func initAttr(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	setCredential(attr, a)
	return attr
}
