package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/failpoint"
)

// engine owns the Kafka side: the two clients, the tracker and the stored position. It outlives connections to
// PostgreSQL, so that what is on its way to Kafka survives a restart of the server.
type engine struct {
	relay  *Relay
	events *kgo.Client
	state  *state

	// life ends Config.Grace after Run's context, so that a shutdown can finish what is on its way.
	life     context.Context
	endLife  context.CancelFunc
	unlinger func() bool

	tracker  tracker
	received pglogrepl.LSN // end of the last whole transaction read; used by the reading goroutine
	sessions int           // streams that got as far as reading

	stored  atomic.Uint64 // position that the state topic holds, as acknowledged by Kafka
	system  System
	storing atomic.Bool   // a position is on its way
	kick    chan struct{} // wakes the confirming goroutine

	failOnce sync.Once
	failed   chan struct{}
	failErr  error
}

func newEngine(ctx context.Context, r *Relay) (*engine, error) {
	e := &engine{relay: r, kick: make(chan struct{}, 1), failed: make(chan struct{})}
	e.life, e.endLife = context.WithCancel(context.WithoutCancel(ctx))
	e.unlinger = context.AfterFunc(ctx, func() {
		// The timer is not stopped: ending a life that has ended is harmless.
		time.AfterFunc(r.cfg.Grace, e.endLife)
	})
	var err error
	if e.events, err = kgo.NewClient(eventOptions(r.cfg, r.rules)...); err != nil {
		e.close()
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	client, err := kgo.NewClient(stateOptions(r.cfg)...)
	if err != nil {
		e.close()
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	e.state = &state{client: client, topic: r.cfg.StateTopic}
	return e, nil
}

// eventOptions are those of the producer of events. Order within a partition and at-least-once delivery rest on
// idempotence, acks from all in-sync replicas, one request in flight (the client's default with idempotence; more freezes
// a new partition for ever on some broker versions) and retries without end.
func eventOptions(cfg Config, rules *rules) []kgo.Opt {
	opts := append([]kgo.Opt{
		kgo.ClientID("ebb-relay"),
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()),
	}, cfg.KafkaOptions...)
	partitioner := kgo.StickyKeyPartitioner(nil)
	if rules.placesPartition() {
		partitioner = placedPartitioner{hash: partitioner}
	}
	return append(opts,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.ProducerLinger(0),
		kgo.RecordPartitioner(partitioner),
		kgo.ProducerBatchMaxBytes(cfg.MaxRecordBytes),
		kgo.MaxBufferedBytes(cfg.MaxBufferedBytes),
		kgo.MaxBufferedRecords(1<<20), // the bound is in bytes
		kgo.UnknownTopicRetries(-1),   // a topic that is made late is no reason to lose the order
	)
}

func stateOptions(cfg Config) []kgo.Opt {
	opts := append([]kgo.Opt{kgo.ClientID("ebb-relay-state"), kgo.SeedBrokers(cfg.Brokers...)}, cfg.KafkaOptions...)
	return append(opts, kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
}

func (e *engine) close() {
	e.unlinger()
	e.endLife()
	if e.events != nil {
		e.events.Close()
	}
	if e.state != nil {
		e.state.client.Close()
	}
}

// fail ends the engine with its first failure, and the wait of a reader for room in the buffer with it.
func (e *engine) fail(err error) {
	e.failOnce.Do(func() {
		e.failErr = err
		close(e.failed)
		e.endLife()
	})
}

func (e *engine) failure() error {
	select {
	case <-e.failed:
		return e.failErr
	default:
		return nil
	}
}

// progressed says whether a stream has been read from since the last call.
func (e *engine) progressed() bool {
	n := e.sessions
	e.sessions = 0
	return n > 0
}

// publish hands a record to Kafka. It waits while the buffer is full, and until the engine's life ends at most.
func (e *engine) publish(record *kgo.Record, tx *transaction, promise func(*kgo.Record, error)) error {
	e.tracker.add(tx)
	e.events.Produce(e.life, record, promise)
	return failpoint.Hit("relay.produced")
}

// commit is what a transaction's begin tells about its end.
type commit struct {
	lsn pglogrepl.LSN
	at  time.Time // by the server's clock
}

type promiseFunc = func(*kgo.Record, error)

// promise makes the callback for the records of one transaction.
func (e *engine) promise(tx *transaction, c commit) promiseFunc {
	return func(record *kgo.Record, err error) {
		if err != nil {
			e.recordFailed(record, c, err)
			return
		}
		if err := failpoint.Hit("relay.acked"); err != nil {
			e.fail(err)
			return
		}
		e.tracker.ack(tx)
		if hook := e.relay.cfg.Hooks.OnRecord; hook != nil {
			hook(Delivered{
				Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
				Bytes: size(record), Latency: time.Since(c.at),
			})
		}
	}
}

func size(record *kgo.Record) int {
	n := len(record.Key) + len(record.Value)
	for _, h := range record.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// recordFailed sorts a failed record: the relay's own end, a record that can never be published, or anything else,
// which is tried again from the slot with a new client.
func (e *engine) recordFailed(record *kgo.Record, c commit, err error) {
	var id string
	if len(record.Headers) > 0 {
		id = string(record.Headers[0].Value)
	}
	switch {
	case e.life.Err() != nil || errors.Is(err, kgo.ErrClientClosed):
	case poisonous(err) || (e.relay.rules.placesPartition() && !isBrokerError(err)):
		e.fail(&PoisonError{ID: id, LSN: c.lsn, Topic: record.Topic, Err: err})
	default:
		e.fail(fmt.Errorf("publish event %s to %s: %w", id, record.Topic, err))
	}
}

// poisonous errors speak of the record itself.
func poisonous(err error) bool {
	for _, e := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTopicException, kerr.InvalidRecord, kerr.InvalidTimestamp} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func isBrokerError(err error) bool {
	var e *kerr.Error
	return errors.As(err, &e)
}

// wake makes the confirming goroutine look again.
func (e *engine) wake() {
	select {
	case e.kick <- struct{}{}:
	default: // it has been told already
	}
}

// storeProgress sends the tracker's position to the state topic, without waiting. One position is on its way at a time;
// when Kafka has it, the confirming goroutine is woken to tell PostgreSQL.
func (e *engine) storeProgress() {
	position := e.tracker.position()
	if uint64(position) <= e.stored.Load() || !e.storing.CompareAndSwap(false, true) {
		return
	}
	if err := failpoint.Hit("relay.before_store"); err != nil {
		e.fail(err)
		return
	}
	record, err := e.positionAt(position).record(e.state.topic)
	if err != nil {
		e.fail(err)
		return
	}
	e.state.client.Produce(e.life, record, func(_ *kgo.Record, err error) {
		defer e.wake()
		if err == nil {
			err = failpoint.Hit("relay.stored")
		}
		switch {
		case err == nil:
			e.stored.Store(uint64(position))
			e.storing.Store(false)
		case e.life.Err() != nil || errors.Is(err, kgo.ErrClientClosed):
		default:
			e.fail(fmt.Errorf("write to state topic %s: %w", e.state.topic, err))
		}
	})
}

func (e *engine) positionAt(lsn pglogrepl.LSN) Position {
	return Position{Slot: e.relay.cfg.Slot, System: e.system, LSN: lsn, At: time.Now()}
}
