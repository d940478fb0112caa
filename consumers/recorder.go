package consumers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// Recorder stores what consumers bring, the records of polls and the ends of attempts, in shared transactions. The consumers of one
// process may share one: the more it is given at a time, the less each of them costs.
type Recorder struct {
	store *journal.Store
	log   *slog.Logger
	ends  *journal.Group[journal.Recording]
	polls *journal.Group[*poll]
	link  *link
	// consumers are those that may claim what results let go on.
	consumers roster
}

// poll is one reader's poll on its way in, and what became of it.
type poll struct {
	journal.Intake
	got journal.Ingested
}

// maxPolls is the most polls of one transaction.
const maxPolls = 16

// RecorderConfig of a Recorder.
type RecorderConfig struct {
	// Store is the journal. Required.
	Store *journal.Store
	// Batch is the most results of one transaction. Zero means 256; 1 is allowed.
	Batch int
	// Linger is how long a result waits for others, and Wait how long a poll does. Zero means not at all.
	Linger time.Duration
	Wait   time.Duration
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
	r.ends = journal.NewGroup(journal.GroupConfig[journal.Recording]{
		Max: cfg.Batch, Linger: cfg.Linger, Pause: 100 * time.Millisecond,
		Key:       func(m journal.Recording) any { return stepOf(m.Claimed) },
		Run:       r.recordEnds,
		Alone:     r.minimal,
		Retryable: journal.Retryable,
	})
	r.polls = journal.NewGroup(journal.GroupConfig[*poll]{
		Max: maxPolls, Linger: cfg.Wait,
		Key: func(p *poll) any { return p.Reader.Name },
		Run: r.ingest,
	})
	return r
}

// stepOf names what at most one member of a transaction may move.
func stepOf(m journal.Claimed) any {
	return struct {
		stepID
		dest string
	}{stepID{m.Saga, m.Dir}, m.Dest}
}

// recordEnds stores the ends of attempts, and starts the attempts that they let go on.
func (r *Recorder) recordEnds(ctx context.Context, ends []journal.Recording) ([]error, error) {
	places := r.consumers.offering()
	got, err := r.store.RecordOnward(ctx, ends, places.offer)
	r.link.saw(err)
	places.start(got.Claimed)
	return got.Errs, err
}

// ingest takes polls in; the reader of a poll that fails tries again by itself.
func (r *Recorder) ingest(ctx context.Context, polls []*poll) ([]error, error) {
	in := make([]journal.Intake, len(polls))
	for i, p := range polls {
		in[i] = p.Intake
	}
	got, err := r.store.Ingest(ctx, in...)
	r.link.saw(err)
	for i := range got {
		polls[i].got = got[i]
	}
	return make([]error, len(polls)), err
}

// take hands a poll over and waits until it is durable.
func (r *Recorder) take(ctx context.Context, in journal.Intake) (journal.Ingested, error) {
	p, done := &poll{Intake: in}, make(chan error, 1)
	if err := r.polls.Submit(ctx, p, func(err error) { done <- err }); err != nil {
		return journal.Ingested{}, err
	}
	err := <-done
	return p.got, err
}

// Run stores what it is given until ctx ends, and then what it has been given; hard ends the tries of a batch while the database is down.
func (r *Recorder) Run(ctx, hard context.Context) {
	var both sync.WaitGroup
	both.Go(func() { r.ends.Run(ctx, hard) })
	both.Go(func() { r.polls.Run(ctx, hard) })
	both.Wait()
}

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
