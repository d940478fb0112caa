package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/ebbline/ebb/bench/probe"
	"github.com/ebbline/ebb/schemas"
)

// halfLoad is what Ebb takes at half of what it can do: orders come at a steady rate. All in milliseconds.
type halfLoad struct {
	// Window is what it took meanwhile.
	Window window `json:"window"`
	// CommitToRecord is from the commit of the order to the record's time, which the relay sets.
	CommitToRecord probe.Spread `json:"commitToRecord"`
	// CommitToConsumer is from the commit of the order to when the first consumer writes the event into the journal.
	CommitToConsumer probe.Spread `json:"commitToConsumer"`
	// ToConsistent is from the order to the end of its saga; ToStatus to the order's final status.
	ToConsistent probe.Spread `json:"orderToConsistent"`
	ToStatus     probe.Spread `json:"orderToStatus"`
	// RecordToRequest and ReplyToRecorded are the two parts of a first step's overhead, Overhead is its whole: from the record to
	// the commit of the result, without the time that the API takes by design.
	RecordToRequest probe.Spread `json:"recordToRequest"`
	ReplyToRecorded probe.Spread `json:"replyToRecorded"`
	Overhead        probe.Spread `json:"stepOverhead"`
	// Chained is the overhead of a step that waits for others: from the commit of the last of them.
	Chained probe.Spread `json:"chainedStepOverhead"`
}

// halfLoad paces orders at the rate and looks at those from the beginning of a window on, when everything has ended.
func (o *ordersRun) halfLoad(ctx context.Context, perSecond float64) (*halfLoad, error) {
	b := o.bench
	b.log.Info("half load", "orders/s", int(perSecond))
	length := b.flags.Seconds + b.warm()
	g, inGroup := errgroup.WithContext(ctx)
	g.Go(func() error { return o.shop.paced(inGroup, b.flags.Clients, perSecond, length) })
	out, took := &halfLoad{}, spent{}
	err := sleep(inGroup, seconds(b.warm()))
	if err == nil {
		out.Window, took, err = b.observe(inGroup, b.flags.Seconds, o.ebb.db, o.ebb)
	}
	if err := errors.Join(err, g.Wait()); err != nil {
		return nil, err
	}
	if err := o.shop.flow.drained(ctx, o.ebb); err != nil {
		return nil, err
	}
	done, err := o.ebb.count(ctx, &out.Window)
	if err != nil {
		return nil, err
	}
	out.Window.finish(done, took)
	from := out.Window.From
	arrivals, err := o.ebb.arrivals(ctx)
	if err != nil {
		return nil, err
	}
	if err := out.orders(ctx, o.ebb, from, arrivals); err != nil {
		return nil, fmt.Errorf("latencies of orders: %w", err)
	}
	if err := out.steps(ctx, o.ebb, from, arrivals, b.flags.Latency); err != nil {
		return nil, fmt.Errorf("latencies of steps: %w", err)
	}
	return out, nil
}

// arrivals reads the time of every order record, in milliseconds, by the event's id.
func (e *ebb) arrivals(ctx context.Context) (map[string]float64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(e.addresses.Brokers...), kgo.ConsumeTopics(schemas.TopicOrder), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, fmt.Errorf("read the order topic: %w", err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, schemas.TopicOrder)
	if err != nil {
		return nil, fmt.Errorf("read the order topic: %w", err)
	}
	total := int64(0)
	ends.Each(func(o kadm.ListedOffset) { total += o.Offset })
	out := make(map[string]float64, total)
	for read := int64(0); read < total; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("read the order topic: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			read++
			for _, h := range r.Headers {
				if h.Key == schemas.HeaderID {
					out[string(h.Value)] = float64(r.Timestamp.UnixMilli())
				}
			}
		})
	}
	return out, nil
}

const orderTimesSQL = `SELECT o.created_event::text,
	extract(epoch FROM o.created_at)::float8 * 1000, extract(epoch FROM pg_xact_commit_timestamp(x.xmin))::float8 * 1000,
	extract(epoch FROM e.created_at)::float8 * 1000, extract(epoch FROM s.updated_at)::float8 * 1000, extract(epoch FROM o.updated_at)::float8 * 1000
FROM orders.orders o
JOIN orders.outbox x ON x.id = o.created_event
JOIN ebb.events e ON e.id = o.created_event
JOIN ebb.sagas s ON s.id = o.created_event
WHERE o.created_at >= $1 AND o.status <> 'PENDING'`

func (h *halfLoad) orders(ctx context.Context, e *ebb, from time.Time, arrivals map[string]float64) error {
	rows, err := e.db.pool.Query(ctx, orderTimesSQL, from)
	if err != nil {
		return err
	}
	var toRecord, toConsumer, toConsistent, toStatus []float64
	var id string
	var created, committed, taken, ended, status float64
	_, err = pgx.ForEachRow(rows, []any{&id, &created, &committed, &taken, &ended, &status}, func() error {
		toRecord = append(toRecord, arrivals[id]-committed)
		toConsumer = append(toConsumer, taken-committed)
		toConsistent = append(toConsistent, ended-created)
		toStatus = append(toStatus, status-created)
		return nil
	})
	h.CommitToRecord, h.CommitToConsumer = probe.SpreadOf(toRecord), probe.SpreadOf(toConsumer)
	h.ToConsistent, h.ToStatus = probe.SpreadOf(toConsistent), probe.SpreadOf(toStatus)
	return err
}

const stepTimesSQL = `SELECT c.saga_id::text, c.destination, extract(epoch FROM c.started_at)::float8 * 1000, c.duration_us / 1000.0::float8,
	extract(epoch FROM pg_xact_commit_timestamp(c.xmin))::float8 * 1000
FROM ebb.calls c JOIN orders.orders o ON o.created_event = c.saga_id
WHERE c.direction = 'do' AND c.attempt = 1 AND o.created_at >= $1
ORDER BY c.saga_id, c.recorded_at`

// before names the steps that a step of the shipped destinations waits for; the others wait for the record.
var before = map[string][]string{"shipping": {"inventory"}, "billing": {"fraudCheck", "shipping"}}

func (h *halfLoad) steps(ctx context.Context, e *ebb, from time.Time, arrivals map[string]float64, latency time.Duration) error {
	rows, err := e.db.pool.Query(ctx, stepTimesSQL, from)
	if err != nil {
		return err
	}
	byDesign := float64(latency) / float64(time.Millisecond)
	var toRequest, toRecorded, overhead, chained []float64
	var id, destination, last string
	var started, took, recorded float64
	committed := map[string]float64{} // of the saga that the rows are at, by destination
	_, err = pgx.ForEachRow(rows, []any{&id, &destination, &started, &took, &recorded}, func() error {
		if id != last {
			clear(committed)
			last = id
		}
		committed[destination] = recorded
		toRecorded = append(toRecorded, recorded-started-took)
		if waits := before[destination]; waits != nil {
			ready := 0.0
			for _, d := range waits {
				ready = max(ready, committed[d])
			}
			chained = append(chained, recorded-ready-byDesign)
			return nil
		}
		toRequest = append(toRequest, started-arrivals[id])
		overhead = append(overhead, recorded-arrivals[id]-byDesign)
		return nil
	})
	h.RecordToRequest, h.ReplyToRecorded = probe.SpreadOf(toRequest), probe.SpreadOf(toRecorded)
	h.Overhead, h.Chained = probe.SpreadOf(overhead), probe.SpreadOf(chained)
	return err
}
