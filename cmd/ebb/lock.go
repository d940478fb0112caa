package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// dirLock keeps a second process out of a data folder; the kernel releases it with the process.
type dirLock struct{ file *os.File }

// lockDir makes the folder and locks it. With fresh, what it holds is removed, once nobody else can be using it.
func lockDir(dir string, fresh bool) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, &usageError{fmt.Errorf("another ebb uses %s; stop it, or choose another folder with --data", dir)}
	}
	l := &dirLock{f}
	if fresh {
		if err := empty(dir); err != nil {
			return nil, fmt.Errorf("--fresh: %w", err)
		}
	}
	return l, nil
}

// empty removes what ebb keeps in the folder, and nothing else: the folder may have been given by mistake. The database's files may be
// elsewhere; package postgresrun removes them.
func empty(dir string) error {
	for _, name := range []string{"run.json", "run.json.tmp", "kafka", "registry.jsonl", "sim.ledger"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (l *dirLock) release() error { return l.file.Close() }
