package kafkarun

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// PortTakenError says that a wanted address is in use.
type PortTakenError struct {
	Addr string
	Err  error
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("address %s is already in use: stop the program that holds it (`ss -ltnp` names it), or configure another port", e.Addr)
}

func (e *PortTakenError) Unwrap() error { return e.Err }

// InUseError says that another process works on the same files.
type InUseError struct {
	Path string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by another process: stop it, or use another directory", e.Path)
}

// checkLoopback refuses addresses that others could reach: neither the broker
// nor the registry has access control, and the broker tells its clients the
// very address it listens on.
func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("Addr: %q is not host:port, for example 127.0.0.1:0", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("Addr: host %q is not a loopback address; there is no access control here", host)
	}
	return nil
}

// listen opens addr. With port 0 it takes the port of the last start, kept in
// portFile, if it is still free, and else a new one.
func listen(addr, portFile string, log *slog.Logger) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if port != "0" {
		return listenOn(addr)
	}
	if kept, err := os.ReadFile(portFile); err == nil {
		last := net.JoinHostPort(host, strings.TrimSpace(string(kept)))
		ln, err := listenOn(last)
		if err == nil {
			return ln, nil
		}
		log.Warn("kafkarun: the port of the last start cannot be used, taking another", "addr", last, "error", err)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ln, err := listenOn(addr)
	if err != nil {
		return nil, err
	}
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	if err := writeFile(portFile, []byte(port+"\n")); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

func listenOn(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &PortTakenError{Addr: addr, Err: err}
	}
	return ln, err
}

// writeFile replaces a file as a whole.
func writeFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone after the rename
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// lockFile opens path and locks it for this process. The lock ends with the
// file or with the process, however it ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &InUseError{Path: path}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
