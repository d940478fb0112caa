//go:build !linux

package harness

import "syscall"

func diesWithParent() *syscall.SysProcAttr { return nil }
