package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/schemas"
)

// Config says where a destination's program finds what it needs. FromEnv fills it as the roles of `ebb` do.
type Config struct {
	// DSN of the PostgreSQL database with schema ebb. Required.
	DSN string
	// Conns bounds connections to it. Zero means 8.
	Conns int32
	// Brokers of Kafka, as HOST:PORT. Required.
	Brokers []string
	// KafkaOptions add TLS, SASL and the like.
	KafkaOptions []kgo.Opt
	// Registry are URLs of the schema registry. Required.
	Registry []string
	// SchemaFile keeps what the registry has answered, to start on it while the registry is away. Empty means none.
	SchemaFile string
	// HTTP is the address, HOST:PORT, that answers /healthz, /readyz and /metrics. Empty means none.
	HTTP string
	// Listening is called with the address that HTTP became, once it is open. Nil is allowed.
	Listening func(addr string)
	// Group is the consumer group. Empty means "ebb." and the destination's name.
	Group string
	// Format of record values: schemas.FormatAuto, FormatAvro or FormatJSON. Empty means FormatAuto.
	Format schemas.Format
	// Records names the headers of records, for outboxes that are not Ebb's. The zero value means those of the contract.
	Records consumers.Records
	// Worker names this process in claims. Empty means host and process id.
	Worker string
	// Grace is how long calls may go on after the stop. Zero means 10 s.
	Grace time.Duration
	// Margin is how long a handler may go on after the end of its context before it counts as hung and its step goes on without it.
	// Zero means 3 s.
	Margin time.Duration
	// Scan is how often work is looked for without having been woken. Zero means 5 s.
	Scan time.Duration
	// Logger for what an operator should know. Nil means none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Conns == 0 {
		c.Conns = 8
	}
	if c.Grace == 0 {
		c.Grace = 10 * time.Second
	}
	if c.Margin == 0 {
		c.Margin = 3 * time.Second
	}
	if c.Worker == "" {
		host, _ := os.Hostname()
		c.Worker = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// problems lists everything that is wrong, of the configuration as it was given. Values are not shown: a DSN holds a password.
func (c Config) problems() []error {
	var out []error
	report := func(bad bool, what string) {
		if bad {
			out = append(out, errors.New("handler: Config."+what))
		}
	}
	report(c.DSN == "", "DSN is empty; set EBB_DSN, or start `ebb up`, and use FromEnv")
	if c.DSN != "" {
		_, err := pgxpool.ParseConfig(c.DSN)
		report(err != nil, "DSN is not a PostgreSQL connection string")
	}
	report(len(c.Brokers) == 0, "Brokers is empty; set EBB_BROKERS, or start `ebb up`, and use FromEnv")
	report(len(c.Registry) == 0, "Registry is empty; set EBB_REGISTRY_URL, or start `ebb up`, and use FromEnv")
	report(c.Conns < 0, "Conns is negative")
	report(c.Grace < 0, "Grace is negative")
	report(c.Margin < 0, "Margin is negative")
	report(c.Scan < 0, "Scan is negative")
	if _, err := schemas.ParseFormat(string(c.Format)); err != nil {
		out = append(out, fmt.Errorf("handler: Config.Format: %w", err))
	}
	return out
}

// FromEnv gives a configuration from EBB_DSN, EBB_BROKERS, EBB_REGISTRY_URL (lists by comma), EBB_SCHEMA_FILE and EBB_HTTP. What is
// not set comes from a running `ebb up` or `ebb infra`, whose run.json is looked for in EBB_DATA, else in .ebb here.
func FromEnv() (Config, error) {
	c := Config{
		DSN: os.Getenv("EBB_DSN"), Brokers: split(os.Getenv("EBB_BROKERS")), Registry: split(os.Getenv("EBB_REGISTRY_URL")),
		SchemaFile: os.Getenv("EBB_SCHEMA_FILE"), HTTP: os.Getenv("EBB_HTTP"),
	}
	if c.DSN != "" && len(c.Brokers) > 0 && len(c.Registry) > 0 {
		return c, nil
	}
	data := os.Getenv("EBB_DATA")
	if data == "" {
		data = ".ebb"
	}
	path := filepath.Join(data, "run.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil // Run names what is missing
	}
	if err != nil {
		return c, fmt.Errorf("handler: addresses of a running ebb: %w", err)
	}
	var found struct {
		DSN      string   `json:"dsn"`
		Brokers  []string `json:"brokers"`
		Registry []string `json:"registry"`
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return c, fmt.Errorf("handler: %s: %w; start `ebb up` again", path, err)
	}
	if c.DSN == "" {
		c.DSN = found.DSN
	}
	if len(c.Brokers) == 0 {
		c.Brokers = found.Brokers
	}
	if len(c.Registry) == 0 {
		c.Registry = found.Registry
	}
	return c, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
