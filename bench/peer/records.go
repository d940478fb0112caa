package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
)

// laneSize is enough that a partition's queue does not fill up during a run and hold the others back.
const laneSize = 1 << 14

// HeaderID is the record header with the record's own id.
const HeaderID = "id"

// RecordsConfig is what Records needs; all of it is required.
type RecordsConfig struct {
	Brokers []string
	Topic   string
	Group   string
	Pool    *pgxpool.Pool
	API     string
	// Partitions of the topic, each of which gets a goroutine.
	Partitions int
}

// Records consumes until ctx ends: a goroutine per partition, and in it one record after the other.
func Records(ctx context.Context, cfg RecordsConfig) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(cfg.Brokers...), kgo.ConsumerGroup(cfg.Group), kgo.ConsumeTopics(cfg.Topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(time.Second),
	)
	if err != nil {
		return fmt.Errorf("consumer of %s: %w", cfg.Topic, err)
	}
	defer client.CloseAllowingRebalance()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	h := &handler{cfg: cfg, client: client, api: newCaller(cfg.API, cfg.Partitions)}
	defer h.api.close()
	lanes := make([]chan *kgo.Record, cfg.Partitions)
	var all sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan *kgo.Record, laneSize)
		all.Go(func() {
			if err := h.lane(ctx, lanes[i]); err != nil {
				stop(err)
			}
		})
	}
	h.feed(ctx, lanes)
	all.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return cause // of a lane; the end of the caller's context is none
	}
	return nil
}

type handler struct {
	cfg    RecordsConfig
	client *kgo.Client
	api    *caller
}

func (h *handler) feed(ctx context.Context, lanes []chan *kgo.Record) {
	for ctx.Err() == nil {
		fetches := h.client.PollFetches(ctx)
		fetches.EachRecord(func(r *kgo.Record) {
			select {
			case lanes[r.Partition] <- r:
			case <-ctx.Done():
			}
		})
	}
}

func (h *handler) lane(ctx context.Context, lane <-chan *kgo.Record) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-lane:
			if err := h.handle(ctx, r); err != nil && ctx.Err() == nil {
				return fmt.Errorf("record %d of partition %d: %w", r.Offset, r.Partition, err)
			}
		}
	}
}

// handle makes the call, commits its result, and only then marks the offset.
func (h *handler) handle(ctx context.Context, r *kgo.Record) error {
	var id string
	for _, header := range r.Headers {
		if header.Key == HeaderID {
			id = string(header.Value)
		}
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return fmt.Errorf("header %s: %w", HeaderID, err)
	}
	reply, err := h.api.call(ctx, http.MethodPost, "/api/notes", id+":note:do", r.Value)
	if err != nil {
		return err
	}
	_, err = h.cfg.Pool.Exec(ctx, `INSERT INTO bench.results (record_id, key, status, reply, started_at, duration_us)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (record_id) DO NOTHING`,
		pgtype.UUID{Bytes: parsed, Valid: true}, string(r.Key), reply.Status, reply.Body, reply.Started, reply.Took.Microseconds())
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	h.client.MarkCommitRecords(r)
	return nil
}
