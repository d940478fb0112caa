package postgresrun

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// releases that can be fetched, by major; the first is taken for a new data folder.
func fetchable() []embedded.PostgresVersion {
	return []embedded.PostgresVersion{embedded.V18, embedded.V17, embedded.V16, embedded.V15, embedded.V14}
}

// cacheDir is where fetched releases are kept. Root's own cache is closed to the user that will run the server.
func cacheDir(cfg Config, who account) (string, error) {
	switch {
	case cfg.CacheDir != "":
		return cfg.CacheDir, nil
	case who.drop:
		return "/var/cache/ebb", nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("user cache folder: %w", err)
	}
	return filepath.Join(base, "ebb"), nil
}

// fetch downloads and unpacks a release once, and finds it there ever after. Two processes that fetch at the same time
// unpack into folders of their own; the first rename wins.
func fetch(ctx context.Context, cfg Config, who account, major int) (installation, error) {
	base, err := cacheDir(cfg, who)
	if err != nil {
		return installation{}, err
	}
	version, err := pick(major)
	if err != nil {
		return installation{}, err
	}
	final := filepath.Join(base, "postgres-"+string(version))
	if inst, err := inspect(ctx, filepath.Join(final, "bin")); err == nil {
		return inst, nil
	}
	cfg.Logger.InfoContext(ctx, "postgresrun: fetching PostgreSQL once", "version", string(version), "cache", final)
	if err := os.MkdirAll(base, 0o755); err != nil {
		return installation{}, fmt.Errorf("make the cache folder: %w", err)
	}
	tmp, err := os.MkdirTemp(base, "unpack-")
	if err != nil {
		return installation{}, fmt.Errorf("make the cache folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := unpack(ctx, tmp, version); err != nil {
		return installation{}, err
	}
	if err := os.Chmod(filepath.Join(tmp, "pg"), 0o755); err != nil {
		return installation{}, fmt.Errorf("open the unpacked release: %w", err)
	}
	if err := os.Rename(filepath.Join(tmp, "pg"), final); err != nil && !os.IsExist(err) {
		if inst, again := inspect(ctx, filepath.Join(final, "bin")); again == nil {
			return inst, nil
		}
		return installation{}, fmt.Errorf("move the unpacked release into place: %w", err)
	}
	return inspect(ctx, filepath.Join(final, "bin"))
}

func pick(major int) (embedded.PostgresVersion, error) {
	for _, v := range fetchable() {
		if major == 0 || strings.HasPrefix(string(v), fmt.Sprintf("%d.", major)) {
			return v, nil
		}
	}
	return "", fmt.Errorf("release %d is not among those that can be fetched", major)
}

// unpack makes the library download and extract into dir, and nothing else. It has no call for that alone: its Start extracts
// first and then starts a server on a data folder. The folder given here is an empty shell of the right version, so
// that Start takes it as made and pg_ctl refuses it at once; what counts is whether the binaries have arrived.
func unpack(ctx context.Context, dir string, version embedded.PostgresVersion) error {
	shell := filepath.Join(dir, "shell")
	if err := os.Mkdir(shell, 0o700); err != nil {
		return fmt.Errorf("prepare to unpack: %w", err)
	}
	major, _, _ := strings.Cut(string(version), ".")
	if err := os.WriteFile(filepath.Join(shell, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		return fmt.Errorf("prepare to unpack: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	pg := filepath.Join(dir, "pg")
	server := embedded.NewDatabase(embedded.DefaultConfig().
		Version(version).Port(uint32(port)).CachePath(dir).
		RuntimePath(filepath.Join(dir, "run")).BinariesPath(pg).DataPath(shell).Logger(&said))
	ended := make(chan error, 1)
	go func() { ended <- server.Start() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		return fmt.Errorf("fetch PostgreSQL %s: %w", version, ctx.Err())
	}
	if err == nil { // cannot be: the shell is not a data folder
		_ = server.Stop()
	}
	if _, statErr := os.Stat(filepath.Join(pg, "bin", "postgres")); statErr != nil {
		return fmt.Errorf("fetch PostgreSQL %s: %w", version, err)
	}
	return nil
}

// freePort asks the kernel for a port of 127.0.0.1 that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("find a free port: listener has address %s", l.Addr())
	}
	return addr.Port, nil
}
