package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/bench/peer"
	"github.com/ebbline/ebb/schemas"
)

// keys is how many aggregates the records of the one-destination load are of.
const keys = 100

// note.yaml is the destination of the one-destination load.
//
//go:embed note.yaml
var noteFile []byte

// noteFolder writes the folder of destination files of the one-destination load.
func (b *bench) noteFolder() (string, error) {
	dir := filepath.Join(b.dir, "destinations")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "note.yaml"), noteFile, 0o644)
}

// ebbRecords writes status updates of 100 orders straight to the order topic, as the relay would, and keeps as many open as there
// are places. Each order's events have ascending versions, and are handled in their order.
type ebbRecords struct {
	ebb  *ebb
	flow *flow
}

func (r ebbRecords) run(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(r.ebb.addresses.Brokers...), kgo.DefaultProduceTopic(schemas.TopicOrder), kgo.ProducerLinger(time.Millisecond))
	if err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	defer client.Close()
	failed := make(chan error, 1)
	for n := int64(0); r.flow.enter(ctx); n++ {
		record, err := r.record(ctx, n)
		if err != nil {
			return err
		}
		client.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
		select {
		case err := <-failed:
			return fmt.Errorf("write records: %w", err)
		default:
		}
	}
	return client.Flush(context.WithoutCancel(ctx))
}

func (r ebbRecords) record(ctx context.Context, n int64) (*kgo.Record, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	payload, err := r.ebb.codec.Encode(ctx, schemas.OrderStatusUpdated{
		OrderID: n%keys + 1, OldStatus: "CONFIRMED", NewStatus: "SHIPPED", At: time.Now().UTC(),
	})
	if err != nil {
		return nil, err
	}
	return &kgo.Record{Key: []byte(key(n)), Value: payload, Headers: []kgo.RecordHeader{
		{Key: schemas.HeaderID, Value: []byte(id.String())},
		{Key: schemas.HeaderEventType, Value: []byte(schemas.EventOrderStatusUpdated)},
		{Key: schemas.HeaderAggregateVersion, Value: []byte(strconv.FormatInt(n/keys+1, 10))},
		{Key: schemas.HeaderSchemaVersion, Value: []byte("1")},
	}}, nil
}

// key of the n-th record.
func key(n int64) string { return strconv.FormatInt(n%keys+1, 10) }

// writePeerRecords fills the peers' topic before they begin. Their value is the body of the call, which spares them the decoding.
func writePeerRecords(ctx context.Context, brokers []string, topic string, count int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	defer client.Close()
	results := make(chan error, count)
	for n := range int64(count) {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		client.Produce(ctx, &kgo.Record{
			Key: []byte(key(n)), Headers: []kgo.RecordHeader{{Key: peer.HeaderID, Value: []byte(id.String())}},
			Value: fmt.Appendf(nil, `{"orderId":%d,"oldStatus":"CONFIRMED","newStatus":"SHIPPED","timestamp":%q}`, n%keys+1, time.Now().UTC().Format(time.RFC3339Nano)),
		}, func(_ *kgo.Record, err error) { results <- err })
	}
	for range count {
		if err := <-results; err != nil {
			return fmt.Errorf("write records: %w", err)
		}
	}
	return nil
}
