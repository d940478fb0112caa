package harness

import "syscall"

// diesWithParent takes children along when the test process dies without its cleanups, as after a time-out.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
