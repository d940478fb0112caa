package consumers

import (
	"context"
	"log/slog"
	"time"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// Recorder stores the ends of attempts in shared transactions. The consumers of one process may share one: the more it is given at a
// time, the less each result costs.
type Recorder struct {
	store *journal.Store
	log   *slog.Logger
	group *journal.Group[journal.Recording]
	link  *link
}

// RecorderConfig of a Recorder.
type RecorderConfig struct {
	// Store is the journal. Required.
	Store *journal.Store
	// Batch is the most results of one transaction. Zero means 256; 1 is allowed.
	Batch int
	// Linger is how long a result waits for others. Zero means not at all.
	Linger time.Duration
	// Logger for what an operator should know. Nil means none.
	Logger *slog.Logger
}

// NewRecorder makes a recorder; Run must be called for it to work.
func NewRecorder(cfg RecorderConfig) *Recorder {
	if cfg.Batch == 0 {
		cfg.Batch = 256
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{store: cfg.Store, log: cfg.Logger, link: newLink()}
	r.group = journal.NewGroup(journal.GroupConfig[journal.Recording]{
		Max: cfg.Batch, Linger: cfg.Linger, Pause: 100 * time.Millisecond,
		Key: func(m journal.Recording) journal.Key { return m.Aggregate },
		Run: func(ctx context.Context, b []journal.Recording) ([]error, error) {
			return watched(r.link, r.store.Record)(ctx, b)
		},
		Alone:     r.minimal,
		Retryable: journal.Retryable,
	})
	return r
}

// Run stores results until ctx ends, and then what it has been given; hard ends the tries of a batch while the database is down.
func (r *Recorder) Run(ctx, hard context.Context) { r.group.Run(ctx, hard) }

// minimal stores a success that the database refused as it was: it has happened, so it must be known.
func (r *Recorder) minimal(ctx context.Context, m journal.Recording, cause error) error {
	if m.Result.Class != saga.ClassSucceeded {
		return cause
	}
	r.log.ErrorContext(ctx, "a success could not be stored as it is", "destination", m.Dest, "saga", m.Saga.String(), "error", cause)
	errs, err := r.store.Record(ctx, []journal.Recording{m.Minimal()})
	if err != nil {
		return err
	}
	return errs[0]
}
