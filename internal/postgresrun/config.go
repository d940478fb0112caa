package postgresrun

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"time"
)

// Role is the superuser of every server that this package makes.
const Role = "ebb"

// MinMajor is the oldest PostgreSQL release that is accepted.
const MinMajor = 14

// Config says what to run and where. Only DataDir is required.
type Config struct {
	// DataDir holds everything of this server. It is made if it does not exist.
	DataDir string

	// Port is the TCP port on 127.0.0.1. Zero takes the port of the last start, or a free one, and remembers it in
	// the data folder.
	Port int

	// BinDir is the folder with initdb and postgres. Empty looks in PATH, pg_config and the usual folders, takes the
	// newest release, and fetches one as the last resort.
	BinDir string

	// CacheDir is where a fetched release is kept. Zero: the user's cache folder, or /var/cache/ebb for root.
	CacheDir string

	// NoFetch forbids the download: an installed server or an error.
	NoFetch bool

	// Sync makes commits survive a power cut (fsync). False survives the death of processes only.
	Sync bool

	// Ephemeral removes the data folder when the server has stopped, even after kill -9 of this process. For tests.
	Ephemeral bool

	// Fresh removes the cluster of earlier starts first, once nobody uses it any more.
	Fresh bool

	// Settings are added to postgresql.conf and win over the defaults of this package. Those that the package's
	// promises rest on (wal_level, synchronous_commit, fsync, full_page_writes, listen_addresses, port,
	// unix_socket_directories, password_encryption) are refused.
	Settings map[string]string

	// StartTimeout bounds initdb, recovery after a crash and the wait for a previous server. Zero: 2 minutes.
	StartTimeout time.Duration

	// Logger receives what an operator may want to see. Nil: slog.Default.
	Logger *slog.Logger
}

var settingName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.]*$`)

// fixedSettings are decided by this package; see the package comment for why.
func fixedSettings() []string {
	return []string{
		"wal_level", "synchronous_commit", "fsync", "full_page_writes", "listen_addresses", "port",
		"unix_socket_directories", "password_encryption",
	}
}

func (c Config) withDefaults() Config {
	if c.StartTimeout == 0 {
		c.StartTimeout = 2 * time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.DataDir != "" {
		if abs, err := filepath.Abs(c.DataDir); err == nil {
			c.DataDir = abs
		}
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	if c.DataDir == "" {
		problems = append(problems, errors.New("DataDir is empty: name a folder for the server's files"))
	}
	if c.Port < 0 || c.Port > 65535 {
		problems = append(problems, fmt.Errorf("port %d is not between 0 (choose a free one) and 65535", c.Port))
	}
	if c.StartTimeout < 0 {
		problems = append(problems, fmt.Errorf("StartTimeout %s is negative: use 0 for the default", c.StartTimeout))
	}
	for name := range c.Settings {
		if !settingName.MatchString(name) {
			problems = append(problems, fmt.Errorf("setting %q is not a PostgreSQL setting name", name))
		}
	}
	for _, name := range fixedSettings() {
		if _, ok := c.Settings[name]; ok {
			problems = append(problems, fmt.Errorf("setting %q is decided by the embedded server (fsync: use Sync)", name))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("postgresrun config: %w", errors.Join(problems...))
	}
	return nil
}
