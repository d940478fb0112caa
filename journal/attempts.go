package journal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ebbline/ebb/journal/saga"
)

// Story is a saga with every exchange of its steps, and why those that do not move wait.
type Story struct {
	SagaView
	// Waits is why a step has not ended, by its Key; steps that have ended are not in it.
	Waits map[string]string `json:"waits"`
	// Attempts are the exchanges by their start, the newest where there are very many.
	Attempts []Attempt `json:"attempts"`
	// Omitted counts the exchanges that are left out.
	Omitted int `json:"omitted,omitempty"`
}

// Attempt is one exchange with a destination, without its bytes.
type Attempt struct {
	Destination string `json:"destination"`
	Direction   string `json:"direction"`
	Epoch       int64  `json:"epoch"`
	Attempt     int    `json:"attempt"`
	Worker      string `json:"worker"`
	// Sent says that a byte of the request may have left.
	Sent bool `json:"sent"`
	// Settled says that this exchange ended the step, Fenced that it came too late to count.
	Settled   bool          `json:"settled,omitempty"`
	Fenced    bool          `json:"fenced,omitempty"`
	Class     string        `json:"class"`
	Status    int           `json:"status,omitempty"` // HTTP, 0 without a reply
	Error     string        `json:"error,omitempty"`
	StartedAt time.Time     `json:"startedAt"`
	Duration  time.Duration `json:"durationNanoseconds"`
}

// Bounds of a story: an order may have any number of sagas, and a saga that met an outage any number of attempts.
const (
	storySagas    = 50
	storyAttempts = 200
)

// The saga's own time is in its id, so that the planner needs one partition per id.
const storyAttemptsSQL = `SELECT c.saga_id, c.destination, c.direction, c.epoch, c.attempt, c.worker, c.sent, c.settled, c.fenced, c.class, c.status,
	c.error, c.started_at, c.duration_us, c.n
FROM (
	SELECT *, count(*) OVER (PARTITION BY saga_id) AS n, row_number() OVER (PARTITION BY saga_id ORDER BY started_at DESC, recorded_at DESC) AS place
	FROM ebb.calls WHERE saga_id = ANY ($1::uuid[])
) c
WHERE c.place <= $2 ORDER BY c.saga_id, c.started_at, c.recorded_at`

// StoriesOf shows the newest sagas of an aggregate by version, each with its exchanges and waits. It only reads.
func (s *Store) StoriesOf(ctx context.Context, k Key) ([]Story, error) {
	views, err := s.view(ctx, viewSagas+`WHERE aggregate_type = $1 AND aggregate_id = $2 ORDER BY aggregate_version DESC, id DESC LIMIT $3`,
		k.Type, k.ID, storySagas)
	if err != nil {
		return nil, err
	}
	slices.Reverse(views)
	stories := make([]Story, len(views))
	for i, v := range views {
		if stories[i], err = s.story(ctx, views[:i], v); err != nil {
			return nil, err
		}
	}
	return stories, s.addAttempts(ctx, stories)
}

func (s *Store) story(ctx context.Context, earlier []SagaView, v SagaView) (Story, error) {
	out := Story{SagaView: v, Waits: map[string]string{}, Attempts: []Attempt{}}
	for _, t := range v.Steps {
		rules, err := s.rulesOf(ctx, t.Destination, t.Version)
		if err != nil {
			return out, err
		}
		if why := (waiting{earlier: earlier, saga: v, step: t, rules: rules}).why(); why != "" {
			out.Waits[t.Key] = why
		}
	}
	return out, nil
}

func (s *Store) addAttempts(ctx context.Context, stories []Story) error {
	ids := make([]pgtype.UUID, len(stories))
	place := map[saga.ID]int{}
	for i, story := range stories {
		id, err := saga.ParseID(story.ID)
		if err != nil {
			return err
		}
		ids[i], place[id] = pgtype.UUID{Bytes: id, Valid: true}, i
	}
	rows, err := s.pool.Query(ctx, storyAttemptsSQL, ids, storyAttempts)
	if err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	var (
		id    saga.ID
		a     Attempt
		took  int64
		total int
	)
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &a.Destination, &a.Direction, &a.Epoch, &a.Attempt, &a.Worker, &a.Sent, &a.Settled, &a.Fenced,
		&a.Class, &a.Status, &a.Error, &a.StartedAt, &took, &total}, func() error {
		a.Duration = time.Duration(took) * time.Microsecond
		at := &stories[place[id]]
		at.Attempts = append(at.Attempts, a)
		at.Omitted = total - len(at.Attempts)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	return nil
}
