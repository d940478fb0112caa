package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/debezium/cdc"
)

// DefaultStateTopic holds the positions of slots.
const DefaultStateTopic = "ebb.relay.state"

// Config says what to stream and where to. DSN, Brokers and Mapping.Tables are required.
type Config struct {
	// DSN is the database of the slot. The connection must be direct: a pooler does not pass replication on. The role
	// needs REPLICATION, and SELECT on the outboxes for the mapping's types.
	DSN string
	// Slot to stream from. Empty: cdc.DefaultSlot.
	Slot string
	// Publication to stream. Empty: cdc.DefaultPublication.
	Publication string

	// Brokers are the addresses to begin with.
	Brokers []string
	// KafkaOptions are added to both clients: TLS, SASL, logging. Options that order or delivery rest on (idempotence,
	// requests in flight, linger, partitioner) come after them and win.
	KafkaOptions []kgo.Opt
	// StateTopic is compacted and made if it does not exist. Empty: DefaultStateTopic.
	StateTopic string

	// Mapping says how a row becomes a record.
	Mapping Mapping

	// StatusInterval is how often progress is stored and confirmed to PostgreSQL; at a crash about that much is sent
	// again. Keep it well below wal_sender_timeout. Zero: 1 second.
	StatusInterval time.Duration
	// Grace is how long a shutdown waits for Kafka to acknowledge what is on its way. Zero: 10 seconds.
	Grace time.Duration
	// StallAfter is how long records may wait for Kafka, or the server may be silent, before Healthy complains.
	// Zero: 1 minute.
	StallAfter time.Duration
	// MaxBufferedBytes bounds the records on their way to Kafka; beyond it reading from PostgreSQL waits. Zero: 64 MiB.
	MaxBufferedBytes int
	// MaxRecordBytes bounds one record. The topics must allow it (max.message.bytes). Zero: 4 MiB.
	MaxRecordBytes int32

	// Logger. Nil: slog.Default.
	Logger *slog.Logger
	// Hooks for metrics. They are called on the hot path and must not block.
	Hooks Hooks
}

// Hooks are optional.
type Hooks struct {
	// OnRecord is called when Kafka has acknowledged a record.
	OnRecord func(Delivered)
	// OnProgress is called about every StatusInterval while a stream is up.
	OnProgress func(Progress)
	// OnReconnect is called when a stream ended and will be tried again.
	OnReconnect func(error)
}

// Delivered is one acknowledged record.
type Delivered struct {
	Topic     string
	Partition int32
	Offset    int64
	Bytes     int           // key, value and headers
	Latency   time.Duration // from the commit (the server's clock) to the acknowledgement (ours)
}

// Progress is where the stream stands.
type Progress struct {
	Received  pglogrepl.LSN // end of the last received transaction or keepalive
	Acked     pglogrepl.LSN // everything up to here is in Kafka
	Confirmed pglogrepl.LSN // last position told to PostgreSQL
	ServerEnd pglogrepl.LSN // end of the server's WAL, as last heard
	LagBytes  uint64        // ServerEnd - Confirmed: what the slot holds back
	Records   int           // on their way to Kafka
	Oldest    time.Duration // how long the oldest of their transactions waits
}

func (c Config) withDefaults() Config {
	set := func(s *string, fallback string) {
		if *s == "" {
			*s = fallback
		}
	}
	set(&c.Slot, cdc.DefaultSlot)
	set(&c.Publication, cdc.DefaultPublication)
	set(&c.StateTopic, DefaultStateTopic)
	duration := func(d *time.Duration, fallback time.Duration) {
		if *d == 0 {
			*d = fallback
		}
	}
	duration(&c.StatusInterval, time.Second)
	duration(&c.Grace, 10*time.Second)
	duration(&c.StallAfter, time.Minute)
	if c.MaxBufferedBytes == 0 {
		c.MaxBufferedBytes = 64 << 20
	}
	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = 4 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

func (c Config) validate() error {
	var problems []error
	if c.DSN == "" {
		problems = append(problems, errors.New("DSN is empty: name the database of the outboxes"))
	}
	if len(c.Brokers) == 0 {
		problems = append(problems, errors.New("no brokers: name at least one as host:port"))
	}
	if !slotName.MatchString(c.Slot) {
		problems = append(problems, fmt.Errorf("slot %q may have lower-case letters, digits and underscores only, up to 63", c.Slot))
	}
	if !validTopic(c.StateTopic) {
		problems = append(problems, fmt.Errorf("state topic %q is no topic name", c.StateTopic))
	}
	for name, d := range map[string]time.Duration{"StatusInterval": c.StatusInterval, "Grace": c.Grace, "StallAfter": c.StallAfter} {
		if d < 0 {
			problems = append(problems, fmt.Errorf("%s %s is negative", name, d))
		}
	}
	if c.MaxRecordBytes < 1<<10 || c.MaxBufferedBytes < int(c.MaxRecordBytes) {
		problems = append(problems, fmt.Errorf("MaxRecordBytes %d must be at least 1024 and not above MaxBufferedBytes %d",
			c.MaxRecordBytes, c.MaxBufferedBytes))
	}
	if len(problems) > 0 {
		return fmt.Errorf("relay config: %w", errors.Join(problems...))
	}
	return nil
}
