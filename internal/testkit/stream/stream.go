package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/kafkarun"
	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/schemas"
)

// Stream is a cluster and a registry for one test.
type Stream struct {
	Brokers []string
	Cluster *kfake.Cluster
	Client  *kgo.Client
	Admin   *kadm.Client
	// Codec encodes and decodes with a registry that is always there.
	Codec *schemas.Codec

	t       testing.TB
	url     string
	away    atomic.Int32 // status of every answer, 0 for the registry's own
	asked   atomic.Int64
	created time.Time
}

// New starts both, with so many partitions for each topic of the contract.
func New(t testing.TB, partitions int32) *Stream {
	t.Helper()
	topics := map[string]int32{}
	for _, m := range schemas.Messages() {
		topics[m.Topic] = partitions
	}
	s := &Stream{t: t, Cluster: testkit.KafkaCluster(t, topics), created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s.Brokers = s.Cluster.ListenAddrs()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...), kgo.ProducerLinger(0), kgo.RecordPartitioner(partitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s.Client, s.Admin = client, kadm.NewClient(client)
	s.startRegistry()
	return s
}

// partitioner takes a record's partition where it is above zero, and else that of its key.
func partitioner() kgo.Partitioner {
	byKey, manual := kgo.StickyKeyPartitioner(nil), kgo.ManualPartitioner()
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		k, m := byKey.ForTopic(topic), manual.ForTopic(topic)
		return func(r *kgo.Record, n int) int {
			if r.Partition > 0 {
				return m.Partition(r, n)
			}
			return k.Partition(r, n)
		}
	})
}

func (s *Stream) startRegistry() {
	registry, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: filepath.Join(s.t.TempDir(), "registry.jsonl")})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = registry.Close() })
	target, err := url.Parse(registry.URL())
	require.NoError(s.t, err)
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		switch status := s.away.Load(); status {
		case 0:
			proxy.ServeHTTP(w, r)
		case cutOff:
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(int(status))
		}
	}))
	s.t.Cleanup(func() {
		front.Close()
		transport.CloseIdleConnections()
	})
	s.url = front.URL
	direct, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{registry.URL()}})
	require.NoError(s.t, err)
	s.t.Cleanup(direct.Close)
	_, err = direct.Register(s.t.Context())
	require.NoError(s.t, err)
	require.NoError(s.t, direct.Warm(s.t.Context()))
	s.Codec = schemas.NewCodec(direct)
}

// cutOff is the status of a registry that gives no answer.
const cutOff = 1

// NewCodec gives a codec with nothing in memory, on the registry that Away takes away.
func (s *Stream) NewCodec() *schemas.Codec {
	s.t.Helper()
	client, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{s.url}, UnknownFor: -1})
	require.NoError(s.t, err)
	s.t.Cleanup(client.Close)
	return schemas.NewCodec(client)
}

// Away lets the registry answer everything with the status, or cut the connection for 0.
func (s *Stream) Away(status int) {
	if status == 0 {
		status = cutOff
	}
	s.away.Store(int32(status))
}

// Back lets the registry answer again.
func (s *Stream) Back() { s.away.Store(0) }

// Asked counts the requests that reached the registry, or its absence.
func (s *Stream) Asked() int64 { return s.asked.Load() }

// EventID is the id of the n-th event of a test: a UUIDv7.
func EventID(n int64) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(1_767_000_000_000+n)<<16)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	id[6], id[8] = 0x70, 0x80|id[8]&0x3f
	return id.String()
}

// Created writes OrderCreated of the order, under EventID(order), as version 1.
func (s *Stream) Created(order int64) {
	s.t.Helper()
	s.Event(EventID(order), 1, schemas.OrderCreated{
		OrderID: order, CustomerID: "customer-1", TotalAmount: big.NewRat(21, 2), Currency: "USD", ShippingType: "domestic", CreatedAt: s.created,
	}, order)
}

// StatusUpdated writes OrderStatusUpdated of the order.
func (s *Stream) StatusUpdated(id string, order, version int64) {
	s.t.Helper()
	s.Event(id, version, schemas.OrderStatusUpdated{OrderID: order, OldStatus: "PENDING", NewStatus: "CONFIRMED", At: s.created}, order)
}

// Cancelled writes OrderCancelled of the order.
func (s *Stream) Cancelled(id string, order, version int64) {
	s.t.Helper()
	s.Event(id, version, schemas.OrderCancelled{OrderID: order, Version: version, Reason: schemas.NullableText("changed their mind"), At: s.created}, order)
}

// Event writes an event of an order as the outbox router does.
func (s *Stream) Event(id string, version int64, v any, order int64) {
	s.t.Helper()
	s.Write(s.Record(id, version, v, order))
}

// Record is what Event writes.
func (s *Stream) Record(id string, version int64, v any, order int64) *kgo.Record {
	s.t.Helper()
	payload, err := s.Codec.Encode(s.t.Context(), v)
	require.NoError(s.t, err)
	m, ok := schemas.MessageOf(v)
	require.True(s.t, ok)
	return &kgo.Record{
		Topic: m.Topic, Key: []byte(strconv.FormatInt(order, 10)), Value: payload,
		Headers: Headers(id, m.EventType, version),
	}
}

// Headers are those of the contract.
func Headers(id, eventType string, version int64) []kgo.RecordHeader {
	return []kgo.RecordHeader{
		{Key: schemas.HeaderID, Value: []byte(id)},
		{Key: schemas.HeaderEventType, Value: []byte(eventType)},
		{Key: schemas.HeaderAggregateVersion, Value: strconv.AppendInt(nil, version, 10)},
		{Key: schemas.HeaderSchemaVersion, Value: []byte("1")},
	}
}

// Write writes records in their order.
func (s *Stream) Write(records ...*kgo.Record) {
	s.t.Helper()
	require.NoError(s.t, s.Client.ProduceSync(context.Background(), records...).FirstErr())
}

// Committed is a group's offset of a partition, -1 for none.
func (s *Stream) Committed(group, topic string, partition int32) int64 {
	s.t.Helper()
	got, err := s.Admin.FetchOffsets(context.Background(), group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return -1 // nobody has joined yet
	}
	require.NoError(s.t, err)
	if o, ok := got.Lookup(topic, partition); ok {
		return o.At
	}
	return -1
}

// Members is how many members a group has.
func (s *Stream) Members(group string) int {
	s.t.Helper()
	got, err := s.Admin.DescribeGroups(context.Background(), group)
	require.NoError(s.t, err)
	return len(got[group].Members)
}

// Registry is the address of the registry that Away takes away.
func (s *Stream) Registry() string { return s.url }
