//go:build unix

package appendlog

import (
	"os"
	"syscall"
)

// lock takes the file for this process; the kernel frees it when the process dies.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
