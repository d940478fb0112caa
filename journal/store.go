package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ebbline/ebb/journal/saga"
	"github.com/ebbline/ebb/producer/outbox"
)

// Encoder makes the payload of an event that the journal publishes: one of the types of package schemas. It must not wait for
// anything remote: it is called while aggregates are locked.
type Encoder interface {
	Encode(ctx context.Context, event any) ([]byte, error)
}

// Config of a Store.
type Config struct {
	// Pool of connections to the database that holds schema ebb, made from a configuration that Prepare has seen. Required.
	Pool *pgxpool.Pool
	// Encoder of published events. Required.
	Encoder Encoder
	// Roles says what event types mean to their aggregates. Types that are missing are changes. Nil means DefaultRoles.
	Roles map[string]saga.Role
	// ReadWithin is how long a planned destination may take to read an event before its saga gets attention. Zero means 15 min.
	ReadWithin time.Duration
	// Logger for what an operator should know. Nil means none.
	Logger *slog.Logger
}

// Prepare sets what the store's connections need: every hot statement looks rows up by index for a handful of keys, but the planner,
// which has seen the tables when they were small and does not know how many keys an array holds, may choose to read them whole.
func Prepare(cfg *pgxpool.Config) {
	before := cfg.AfterConnect
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan")
		return err
	}
}

// DefaultRoles are those of the order service's events.
func DefaultRoles() map[string]saga.Role {
	return map[string]saga.Role{
		"OrderCreated":       saga.Create,
		"OrderStatusUpdated": saga.Change,
		"OrderCancelled":     saga.Cancelling,
	}
}

func (c Config) withDefaults() Config {
	if c.Roles == nil {
		c.Roles = DefaultRoles()
	}
	if c.ReadWithin == 0 {
		c.ReadWithin = 15 * time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	if c.Pool == nil {
		problems = append(problems, errors.New("journal: Config.Pool is nil"))
	}
	if c.Encoder == nil {
		problems = append(problems, errors.New("journal: Config.Encoder is nil"))
	}
	if c.ReadWithin < 0 {
		problems = append(problems, errors.New("journal: Config.ReadWithin is negative"))
	}
	return errors.Join(problems...)
}

// Store runs the step protocol on PostgreSQL. It is safe for concurrent use.
type Store struct {
	cfg     Config
	pool    *pgxpool.Pool
	log     *slog.Logger
	catalog *catalog
	hub     *hub
	// histories knows aggregates that are not loaded whole.
	histories *histories
	// replies and texts remember what requests of later steps are made of.
	replies *recent[replyKey, Response]
	texts   *recent[saga.ID, eventText]
	// skipLock is set only by the test that proves that the lock is needed.
	skipLock bool
}

// Open makes a store on a migrated database; it does not connect.
func Open(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Store{
		cfg: cfg, pool: cfg.Pool, log: cfg.Logger, catalog: newCatalog(), hub: newHub(), histories: newHistories(),
		replies: newRecent[replyKey, Response](), texts: newRecent[saga.ID, eventText](),
	}, nil
}

// RoleOf says what the event type means to its aggregate.
func (s *Store) RoleOf(eventType string) saga.Role {
	if r, ok := s.cfg.Roles[eventType]; ok {
		return r
	}
	return saga.Change
}

// jitter spreads retries over at most d.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// Ping asks the database for a sign of life.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

// Maintain makes the partitions of the coming days; call it at least once a week.
func (s *Store) Maintain(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, "SELECT ebb.calls_make_partitions()"); err != nil {
		return fmt.Errorf("make partitions of ebb.calls: %w", err)
	}
	_, err1 := Outbox.MakePartitions(ctx, s.pool, outbox.PartitionDays)
	_, err2 := OutboxRepair.MakePartitions(ctx, s.pool, outbox.PartitionDays)
	return errors.Join(err1, err2)
}
