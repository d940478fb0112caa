package postgresrun

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
)

// folder is a data folder on disk and who runs it.
type folder struct {
	path string
	who  account
}

func (f folder) pgdata() string       { return filepath.Join(f.path, "data") }
func (f folder) socket() string       { return filepath.Join(f.path, "socket") }
func (f folder) log() string          { return filepath.Join(f.path, "server.log") }
func (f folder) file(n string) string { return filepath.Join(f.path, n) }

// maxSocketDir keeps the whole socket path below the 103 bytes that the smallest of the common kernels takes.
const maxSocketDir = 103 - len("/.s.PGSQL.65535.lock")

// socketDir is the folder of the Unix socket, or empty where its path would be too long for a socket address.
func (f folder) socketDir() string {
	if len(f.socket()) > maxSocketDir {
		return ""
	}
	return f.socket()
}

// prepare makes the folder itself; what is inside belongs to the server's user alone.
func (f folder) prepare() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	for _, dir := range []string{f.path, f.socket()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the data folder: %w", err)
		}
		if err := f.who.own(dir); err != nil {
			return err
		}
	}
	return nil
}

// lockOwner takes the owner lock, which the kernel gives back when this process ends in whatever way.
func (f folder) lockOwner() (*os.File, error) {
	file, err := os.OpenFile(f.file("owner.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the owner lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("take the owner lock: %w", err)
		}
		text, _ := os.ReadFile(f.file("owner.lock"))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 if it has not been written yet
		return nil, &InUseError{DataDir: f.path, PID: pid}
	}
	if err := file.Truncate(0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write the owner lock: %w", err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write the owner lock: %w", err)
	}
	return file, nil
}

// major is the release that made the data folder, 0 if it has none yet.
func (f folder) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(f.pgdata(), "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the release of the data folder: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s/PG_VERSION has %d bytes and is no release number", f.pgdata(), len(text))
	}
	return n, nil
}

// password reads the role's password, making one for a new folder.
func (f folder) password() (string, error) {
	text, err := os.ReadFile(f.file("password"))
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if n, err := f.major(); err != nil || n != 0 {
		return "", fmt.Errorf("%s is missing beside a made data folder: restore the file, or remove %s to start anew",
			f.file("password"), f.path)
	}
	secret := rand.Text()
	if err := f.write("password", secret+"\n"); err != nil {
		return "", err
	}
	return secret, nil
}

// write replaces one of our small files in the folder, readable by the server's user only.
func (f folder) write(name, content string) error {
	return f.replace(f.file(name), content)
}

func (f folder) replace(path, content string) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.who.own(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// initdb makes the cluster beside its place and moves it there when complete, so that an interrupted run leaves
// nothing that looks usable.
func (f folder) initdb(ctx context.Context, inst installation, sync bool) error {
	half := f.pgdata() + ".making"
	if err := os.RemoveAll(half); err != nil {
		return fmt.Errorf("clear an interrupted initdb: %w", err)
	}
	args := []string{
		"-D", half, "-U", Role, "-E", "UTF8", "--no-locale", "--pwfile", f.file("password"),
		"--auth-local=scram-sha-256", "--auth-host=scram-sha-256",
	}
	if !sync {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, inst.tool("initdb"), args...)
	cmd.Dir = f.path
	cmd.Env = serverEnv()
	cmd.SysProcAttr = initAttr(f.who)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("initdb of %s: %w\n%s", inst.bin, err, tail(out.String(), 10))
	}
	if err := os.Rename(half, f.pgdata()); err != nil {
		return fmt.Errorf("move the made cluster into place: %w", err)
	}
	return nil
}

// configure writes postgresql.conf anew: the file is ours, and a start must not depend on what an older one wrote.
func (f folder) configure(cfg Config, port int) error {
	settings := map[string]string{
		"max_connections":                     "200",
		"shared_buffers":                      "256MB",
		"max_locks_per_transaction":           "512", // group commit takes one advisory lock per aggregate
		"max_wal_senders":                     "16",
		"max_replication_slots":               "16",
		"max_slot_wal_keep_size":              "8GB", // a forgotten slot may cost this much disk, not all of it
		"min_wal_size":                        "256MB",
		"max_wal_size":                        "2GB",
		"checkpoint_timeout":                  "15min",
		"checkpoint_completion_target":        "0.9",
		"jit":                                 "off", // short statements only
		"timezone":                            "UTC",
		"log_timezone":                        "UTC",
		"log_min_messages":                    "warning",
		"log_line_prefix":                     "%m [%p] %q%a ",
		"idle_in_transaction_session_timeout": "5min",
		"max_logical_replication_workers":     "0",
		"autovacuum_naptime":                  "15s",
	}
	for name, value := range cfg.Settings {
		settings[name] = value
	}
	// Last, because later lines win and these are promises of the package.
	fixed := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": f.socketDir(),
		"password_encryption":     "scram-sha-256",
		"wal_level":               "logical",
		"synchronous_commit":      "on",
		"full_page_writes":        "on",
		"fsync":                   onOff(cfg.Sync),
	}
	var b strings.Builder
	b.WriteString("# Written at every start of the embedded server; change it through its settings.\n")
	writeSettings(&b, settings)
	writeSettings(&b, fixed)
	return f.replace(filepath.Join(f.pgdata(), "postgresql.conf"), b.String())
}

func writeSettings(b *strings.Builder, settings map[string]string) {
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	sort.Strings(names)
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`, "\n", " ")
	for _, name := range names {
		fmt.Fprintf(b, "%s = '%s'\n", name, quote.Replace(settings[name]))
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// tail gives the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
