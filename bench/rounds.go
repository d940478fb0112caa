package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/ebbline/ebb/bench/peer"
	"github.com/ebbline/ebb/internal/kafkarun"
)

// ordersRun is an Ebb that works four-step orders.
type ordersRun struct {
	bench *bench
	ebb   *ebb
	shop  *shop
}

// withOrders starts an Ebb with the shipped destinations, lets do use it, and checks afterwards that its books agree.
func (b *bench) withOrders(ctx context.Context, o ebbOptions, do func(*ordersRun) error) (err error) {
	if err := b.api.reset(ctx); err != nil {
		return err
	}
	e, err := b.startEbb(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.discard(ctx, e)) }()
	shop, err := newShop(e, b.flags.InFlight)
	if err != nil {
		return err
	}
	return b.watched(ctx, e, shop.flow, func() error { return do(&ordersRun{bench: b, ebb: e, shop: shop}) })
}

// watched runs do while the ends of sagas are watched, and then checks the books.
func (b *bench) watched(ctx context.Context, e *ebb, f *flow, do func() error) error {
	watching, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return f.watch(watching, e) })
	err := do()
	stop()
	if err = errors.Join(err, g.Wait()); err != nil {
		return err
	}
	return b.checkEbb(ctx, e, f.begun.Load())
}

// discard stops an Ebb and removes its data.
func (b *bench) discard(ctx context.Context, e *ebb) error {
	return errors.Join(e.stop(ctx), os.RemoveAll(filepath.Join(b.dir, e.db.name)))
}

// saturated keeps all places taken and measures a window.
func (o *ordersRun) saturated(ctx context.Context) (window, error) {
	return o.bench.loaded(ctx, o.ebb, o.shop.flow, func(loading context.Context) error {
		return o.shop.closed(loading, o.bench.flags.Clients)
	})
}

// loaded measures a window while load runs, after a warm-up that begins with the first end. It returns when all has ended.
func (b *bench) loaded(ctx context.Context, e *ebb, f *flow, load func(context.Context) error) (window, error) {
	loading, stop := context.WithCancel(ctx)
	defer stop()
	g, inGroup := errgroup.WithContext(loading)
	g.Go(func() error { return load(inGroup) })
	err := f.started(inGroup, e)
	if err == nil {
		err = sleep(inGroup, seconds(b.warm()))
	}
	if err != nil {
		stop()
		return window{}, errors.Join(g.Wait(), err)
	}
	w, spent, err := b.observe(inGroup, b.flags.Seconds, e.db, e)
	stop()
	if err := errors.Join(g.Wait(), err); err != nil {
		return w, err
	}
	if err := f.drained(ctx, e); err != nil {
		return w, err
	}
	done, err := e.count(ctx, &w)
	w.finish(done, spent)
	return w, err
}

// plainRound measures the plain loop.
func (b *bench) plainRound(ctx context.Context) (_ window, err error) {
	if err := b.api.reset(ctx); err != nil {
		return window{}, err
	}
	db, err := b.server.create(ctx, "plain", min(b.flags.Workers, 64))
	if err != nil {
		return window{}, err
	}
	defer func() { err = errors.Join(err, db.drop(ctx)) }()
	if err := peer.Migrate(ctx, db.pool); err != nil {
		return window{}, err
	}
	steps := peer.NewSteps(db.pool, b.api.url, b.flags.Workers)
	defer steps.Close()
	w, err := b.peerWindow(ctx, db, func(loading context.Context) error { return plainOrders(loading, steps, b.flags.Workers) }, func(w window) (int, error) {
		var n int
		err := db.pool.QueryRow(ctx, `SELECT count(*) FROM bench.orders WHERE status <> 'PENDING' AND updated_at >= $1 AND updated_at < $2`,
			w.From, w.until()).Scan(&n)
		return n, err
	})
	if err != nil {
		return w, err
	}
	return w, b.checkPlain(ctx, db, &w)
}

// ebbRecordsRound measures Ebb on the one-destination load.
func (b *bench) ebbRecordsRound(ctx context.Context, partitions int) (w window, err error) {
	if err := b.api.reset(ctx); err != nil {
		return w, err
	}
	folder, err := b.noteFolder()
	if err != nil {
		return w, err
	}
	e, err := b.startEbb(ctx, ebbOptions{partitions: partitions, destinations: folder})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, b.discard(ctx, e)) }()
	f := newFlow(b.flags.InFlight)
	err = b.watched(ctx, e, f, func() (err error) {
		w, err = b.loaded(ctx, e, f, ebbRecords{e, f}.run)
		return err
	})
	return w, err
}

// peerRecordsRound measures a consumer with a goroutine per partition, on a broker like Ebb's in its own process.
func (b *bench) peerRecordsRound(ctx context.Context, partitions int) (_ window, err error) {
	const topic = "notes"
	if err := b.api.reset(ctx); err != nil {
		return window{}, err
	}
	db, err := b.server.create(ctx, "records", partitions+2)
	if err != nil {
		return window{}, err
	}
	defer func() { err = errors.Join(err, db.drop(ctx)) }()
	if err := peer.Migrate(ctx, db.pool); err != nil {
		return window{}, err
	}
	data := filepath.Join(b.dir, db.name)
	broker, err := kafkarun.StartBroker(kafkarun.BrokerConfig{DataDir: data, Sync: true})
	if err != nil {
		return window{}, err
	}
	defer func() { err = errors.Join(err, broker.Close(), os.RemoveAll(data)) }()
	brokers := []string{broker.Addr()}
	spec := kafkarun.TopicSpec{Name: topic, Partitions: int32(partitions), ReplicationFactor: 1}
	if _, err := kafkarun.EnsureTopics(ctx, brokers, []kafkarun.TopicSpec{spec}); err != nil {
		return window{}, err
	}
	// No goroutine makes more than one call per latency, so this is more than the window and its warm-up can take.
	count := int(float64(partitions) * (b.flags.Seconds + b.warm() + 3) / max(b.flags.Latency.Seconds(), 0.001))
	if err := writePeerRecords(ctx, brokers, topic, count); err != nil {
		return window{}, err
	}
	cfg := peer.RecordsConfig{Brokers: brokers, Topic: topic, Group: "bench", Pool: db.pool, API: b.api.url, Partitions: partitions}
	w, err := b.peerWindow(ctx, db, func(loading context.Context) error { return peer.Records(loading, cfg) }, func(w window) (int, error) {
		var n int
		err := db.pool.QueryRow(ctx, `SELECT count(*) FROM bench.results WHERE recorded_at >= $1 AND recorded_at < $2`, w.From, w.until()).Scan(&n)
		return n, err
	})
	if err != nil {
		return w, err
	}
	return w, b.checkRecords(ctx, db, partitions)
}

// peerWindow measures a window while load runs, after a warm-up that begins with the first answer of the API.
func (b *bench) peerWindow(ctx context.Context, db *database, load func(context.Context) error, count func(window) (int, error)) (window, error) {
	loading, stop := context.WithCancel(ctx)
	defer stop()
	g, inGroup := errgroup.WithContext(loading)
	g.Go(func() error { return load(inGroup) })
	var w window
	err := b.firstCall(inGroup)
	if err == nil {
		err = sleep(inGroup, seconds(b.warm()))
	}
	if err != nil {
		stop()
		return w, errors.Join(g.Wait(), err)
	}
	w, spent, err := b.observe(inGroup, b.flags.Seconds, db, nil)
	stop()
	if err := errors.Join(g.Wait(), err); err != nil {
		return w, err
	}
	done, err := count(w)
	if err != nil {
		return w, fmt.Errorf("count what was finished: %w", err)
	}
	w.finish(done, spent)
	return w, nil
}

// firstCall waits until the contender has made its first call.
func (b *bench) firstCall(ctx context.Context) error {
	for {
		s, err := b.api.stats(ctx)
		if err != nil || s.Calls > 0 {
			return err
		}
		if err := sleep(ctx, seconds(0.02)); err != nil {
			return err
		}
	}
}
