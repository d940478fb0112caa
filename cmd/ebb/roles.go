package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ebbline/ebb/compensator"
	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/consumers/endpoint"
	"github.com/ebbline/ebb/debezium/cdc"
	"github.com/ebbline/ebb/debezium/relay"
	"github.com/ebbline/ebb/destination/spec"
	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/producer/events"
	"github.com/ebbline/ebb/producer/httpapi"
	"github.com/ebbline/ebb/producer/outcome"
	"github.com/ebbline/ebb/producer/postgres"
	"github.com/ebbline/ebb/schemas"
)

// orderSagas shows the journal to the order API.
type orderSagas struct{ store *journal.Store }

func (o orderSagas) OrderSagas(ctx context.Context, orderID string) (any, error) {
	return o.store.SagasOf(ctx, journal.Key{Type: schemas.AggregateOrder, ID: orderID})
}

// addProducer adds the order service: its API to the mux, and the consumer of outcomes to the group.
func addProducer(g *lifecycle.Group, mux *http.ServeMux, s *session, brokers []string, log *slog.Logger) error {
	codec := events.New(s.codec)
	orders, err := postgres.New(postgres.Config{Pool: s.pool, Encoder: codec, Logger: log})
	if err != nil {
		return err
	}
	api, err := httpapi.New(httpapi.Config{Store: orders, CurrencyScale: schemas.CurrencyScale, Sagas: orderSagas{s.store}, Logger: log})
	if err != nil {
		return err
	}
	mux.Handle("/api/", s.schemas.guard(api))
	if err := addPage(mux, orders, s, log); err != nil {
		return err
	}
	g.Add("outcome", func(ctx context.Context) error {
		return outcome.Run(ctx, outcome.Config{
			Brokers: brokers, Store: orders, Decoder: codec, Logger: log,
			DeadLetter: func(ctx context.Context, l outcome.DeadLetter) error {
				d := intake.DeadLetter(l.Record, l.Err.Error())
				d.Reason = l.Reason
				p := journal.Position{Topic: l.Record.Topic, Partition: l.Record.Partition, Offset: l.Record.Offset}
				return s.store.Keep(ctx, l.Group, p, *d)
			},
		})
	})
	g.Add("maintenance", func(ctx context.Context) error {
		every(ctx, time.Hour, func() {
			if err := orders.Maintain(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "maintenance of the orders failed", "error", err)
			}
		})
		return nil
	})
	return nil
}

// every calls f at once and then again and again until ctx ends.
func every(ctx context.Context, d time.Duration, f func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// consumerSettings are those of a consumer that do not come from its file.
type consumerSettings struct {
	worker  string
	brokers []string
	batch   int
	grace   time.Duration
	lookup  spec.Lookup
	metrics *consumers.Metrics
	// recorder is shared by the consumers of a process; nil for a consumer of its own.
	recorder *consumers.Recorder
	// decoder and records are how records are read; without a decoder it is the session's.
	decoder consumers.Decoder
	records consumers.Records
	// check takes the consumer's readiness.
	check func(name string, check func(ctx context.Context) error)
}

// claimAhead is long against the claims' way and short against their margin.
const claimAhead = 250 * time.Millisecond

// addConsumer adds the consumer of a destination file.
func addConsumer(g *lifecycle.Group, s *session, file *spec.Spec, set consumerSettings, log *slog.Logger) error {
	ep, err := endpoint.New(endpoint.Config{Live: file, Versions: s.store, Lookup: set.lookup, Logger: log})
	if err != nil {
		return err
	}
	r := file.Rules()
	var ahead time.Duration
	if r.RateEvery == 0 && (r.Idempotency == spec.IdempotentAlways || r.Idempotency == spec.IdempotentWindow) {
		ahead = claimAhead
	}
	if set.decoder == nil {
		set.decoder = s.codec
	}
	c, err := consumers.New(consumers.Config{
		Destination: file.Name, Endpoint: ep, Store: s.store, Decoder: set.decoder, Records: set.records, Brokers: set.brokers, Worker: set.worker,
		Concurrency: r.Concurrency, Ahead: ahead, RateEvery: r.RateEvery, RateBurst: r.RateBurst, BreakerAfter: r.BreakerAfter, ProbeEvery: r.ProbeEvery,
		ProbeMax: r.ProbeMax, Timeout: r.Timeout, Batch: set.batch, Grace: set.grace,
		Metrics: set.metrics, Recorder: set.recorder, Logger: log,
	})
	if err != nil {
		return err
	}
	set.check("records for "+file.Name, func(context.Context) error { return c.Reading() })
	g.Add("consumer "+file.Name, s.schemas.after(func(ctx context.Context) error {
		defer ep.Close()
		return c.Run(ctx)
	}))
	return nil
}

func addCompensator(g *lifecycle.Group, s *session, brokers []string, log *slog.Logger) error {
	c, err := compensator.New(compensator.Config{Store: s.store, Decoder: s.codec, Brokers: brokers, Logger: log})
	if err != nil {
		return err
	}
	g.Add("compensator", s.schemas.after(c.Run))
	g.Add("partitions", func(ctx context.Context) error {
		every(ctx, time.Hour, func() {
			if err := s.store.Maintain(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "partitions of the journal were not made", "error", err)
			}
		})
		return nil
	})
	return nil
}

// addRelay adds the relay with its metrics and its readiness.
func addRelay(g *lifecycle.Group, ops *lifecycle.Ops, dsn, slot string, brokers []string, log *slog.Logger, outboxes ...string) error {
	lag := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ebb_slot_lag_bytes", Help: "WAL that the replication slot holds back."})
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ebb_commit_to_kafka_seconds",
		Help: "From commit to Kafka's acknowledgement.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)})
	ops.Registry.MustRegister(lag, latency)
	r, err := relay.New(relay.Config{
		DSN: dsn, Slot: slot, Brokers: brokers, Mapping: relay.OutboxMapping(append(cdc.DefaultTables(), outboxes...)...), Logger: log,
		Hooks: relay.Hooks{
			OnProgress: func(p relay.Progress) { lag.Set(float64(p.LagBytes)) },
			OnRecord:   func(d relay.Delivered) { latency.Observe(d.Latency.Seconds()) },
		},
	})
	if err != nil {
		return err
	}
	ops.Check("relay", func(context.Context) error { return r.Healthy() })
	g.Add("relay", r.Run)
	return nil
}

// migrate brings both schemas to the newest version and sets up change data capture, also for further outboxes.
func migrate(ctx context.Context, dsn, slot string, outboxes ...string) (cdc.Result, error) {
	if err := postgres.Migrate(ctx, dsn); err != nil {
		return cdc.Result{}, err
	}
	if err := journal.Migrate(ctx, dsn); err != nil {
		return cdc.Result{}, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return cdc.Result{}, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return cdc.Setup(ctx, conn, cdc.Config{Slot: slot, Tables: append(cdc.DefaultTables(), outboxes...)})
}
